// Oobleck and Varuna as the artifact of the Oobleck paper evaluates them: every loss of a node is a
// global rendezvous.
//
//   shape      floor(nodes/pipeline_nodes) pipelines, none: stopped. A step takes `step` of the ready
//              and running nodes, looked up once at the end of the rendezvous; newcomers wait for the
//              next one.
//   Oobleck    checkpoint_every = 0: a rendezvous of the reconfiguration time; the step in flight is
//              lost.
//   Varuna     at the end of every checkpoint_every-th completed step (undone ones count), and of the
//              first step after a removal, training stands still for checkpoint_write, and the
//              checkpoint is usable one checkpoint_write later. A removal undoes the steps after the
//              last usable checkpoint, all where there is none. With a write time of 0 a checkpoint is
//              usable at once.
//   published  Varuna's checkpoint counts as good or bad when it begins: bad when, in the order in
//              which the heap's array stores the events, some removal stands before the first
//              completion of a checkpoint, however late it is. A bad one undoes the last
//              checkpoint_every recorded steps and takes them off the number of completed steps.
//
//   source  docs/resilience.md, sections 7.1 and 7.2; github.com/SymbioticLab/Oobleck, branch
//           sosp23-artifact, tools/simulator/{oobleck,varuna}_simulator.py, for the defects of the
//           published rules (read, not copied).
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "sim/goodput/replay/replay.hpp"

namespace stagecraft {

struct GlobalRestart {
  int pipeline_nodes = 1;
  std::function<Duration(int usable_nodes)> step = {};  // > 0
  Duration rendezvous{};
  // Published rules of Varuna for BERT-large: the end of a rendezvous sets the time of the next one by the
  // number of usable nodes. Numbers outside the table take its nearest entry. Empty: always `rendezvous`.
  std::map<int, Duration> rendezvous_by_nodes = {};
  std::int64_t checkpoint_every = 0;  // steps; 0: no checkpoints, nothing but the step in flight is lost
  Duration checkpoint_write{};
};

// requires pipeline_nodes >= 1; changes in order of time, nodes alternately joining and going
[[nodiscard]] Replay replay_global_restart(const std::vector<NodeChange>& changes, const ReplayRules& rules,
                                           const GlobalRestart& policy);

}  // namespace stagecraft
