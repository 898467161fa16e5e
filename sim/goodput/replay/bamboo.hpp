// Bamboo's two simulators: its own, and the one in the artifact of the Oobleck paper.
//
//   places     after a rendezvous node i < P·S of the list runs place (floor(i/S), i mod S), P =
//              floor(nodes/S); the rest waits.
//   loss       of a running node with one place (p, s): the holder of (p, s−1), or of (p, S−1) for s =
//              0, takes the place too and is overloaded. Fatal when that holder has two places already,
//              is gone, or when the lost node itself had two: a global rendezvous. The first loss after
//              a rendezvous that is not fatal makes all steps until the next one floor(1.5·step) long,
//              and the step in flight longer by floor(0.5·(its end − the loss)), once.
//   step end   a local rendezvous begins when waiting nodes can stand in for all overloaded ones, when
//              2·overloaded/active passes a threshold, or when one pipeline more could be made; active
//              = P·S − overloaded.
//   published  a loss while waiting or under creation slows the step as well; who waits is counted up
//              but not down; a loss whose shadow is nowhere is ignored; steps that end during a
//              rendezvous may begin a local one.
//   corrected  a loss during a rendezvous begins it again, a global one if it was global or the loss is
//              fatal.
//
//   source  docs/resilience.md, section 7.3; the fourth published rule follows from the published values
//           (GPT-2 and BERT on the g4dn trace lose 264 and 77 steps by it).
#pragma once

#include <functional>
#include <vector>

#include "sim/goodput/replay/replay.hpp"

namespace stagecraft {

struct RedundantPipelines {
  int stages = 1;
  std::function<Duration(int pipelines, int usable_nodes)> step = {};  // > 0, in whole milliseconds
  Duration global_rendezvous{};
  Duration local_rendezvous{};
  double slowdown = 1;             // slowdown by a node that does the work of two, >= 1
  double rebalance_threshold = 0;  // threshold of 2·overloaded/active
};

// requires stages >= 1; changes in order of time, nodes alternately joining and going
[[nodiscard]] Replay replay_bamboo(const std::vector<NodeChange>& changes, const ReplayRules& rules,
                                   const RedundantPipelines& policy);

}  // namespace stagecraft
