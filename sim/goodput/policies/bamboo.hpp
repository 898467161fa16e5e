// Bamboo: each node also keeps the state of its pipeline's next stage and runs its forward, so that it can
// take that stage over at once.
//
//   places      P pipelines of S stages, one node each. The node of stage s−1 shadows stage s, that of
//               S−1 stage 0.
//   loss        of a node with one place: once the job knows of it, its shadow takes the place too, is
//               overloaded, and everything goes `slowdown` times as slowly until the next rendezvous; not
//               even the step in flight is lost, which waits for the lost node until then. Fatal when the
//               shadow is overloaded or gone, or the lost node was overloaded itself: the job stops,
//               detects, and holds a global rendezvous.
//   rendezvous  local, at a step end, when waiting nodes can stand in for all overloaded ones, when
//               2·overloaded/active passes the threshold, or when one pipeline more can be made. Nodes
//               keep their places where they can; vacant ones go to waiting nodes in the order of their
//               adds. A loss of a node with a place begins it again once it is detected.
//   state       of a stage survives while one node has it as its own or as its shadow; else the job
//               goes back to its last checkpoint. A node in a place whose state it has not gets it from
//               a peer. Where pipelines share states out (ZeRO, experts) each place has one of its own
//               in place of its stage's, and another number of pipelines shares them out anew.
//   process     faults are losses whose node waits at once.
//   cost        the step of P pipelines contains the redundant forward (redundant_stage_times).
//
//   source  docs/resilience.md, sections 6 and 7.3; Bamboo, NSDI 2023 (arXiv 2204.12013).
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sim/goodput/policy.hpp"

namespace stagecraft {

struct BambooSpec {
  int stages = 1;     // S
  int pipelines = 1;  // P of the full job; nodes beyond P·S wait
  // Step of `pipelines` pipelines without an overloaded node, whose ShapedStep::nodes nobody reads. Called from
  // any thread.
  std::function<std::optional<ShapedStep>(int pipelines)> step;
  Duration global_rendezvous{};
  Duration local_rendezvous{};
  double slowdown = 1;             // >= 1
  double rebalance_threshold = 0;  // threshold of 2·overloaded/active
  bool copies = true;              // each pipeline has all states
  Duration peer_transfer{};        // time to copy a node's state from a peer
};

class Bamboo : public Policy {
 public:
  explicit Bamboo(BambooSpec spec);

  Response on(const Incident& incident, const Machines& machines) override;
  Plan plan(const Situation& situation) override;

 private:
  [[nodiscard]] Response lost(const Incident& incident, const Machines& machines);
  [[nodiscard]] Response halt();
  [[nodiscard]] bool taken_over(int node);
  [[nodiscard]] bool wants_rebalance(const Machines& machines, Duration now) const;
  [[nodiscard]] Plan go_on(const Situation& situation) const;
  [[nodiscard]] Plan rendezvous(const Situation& situation);
  // The largest number of pipelines on `nodes` nodes that has a step.
  [[nodiscard]] std::optional<std::pair<int, ShapedStep>> best(int nodes) const;
  [[nodiscard]] int overloaded() const;
  [[nodiscard]] bool state_survives() const;
  // Numbers of states: of stages, or of places. The next stage's is place_after() it.
  [[nodiscard]] int state_of(int place) const { return spec_.copies ? place % spec_.stages : place; }
  [[nodiscard]] bool has_state(int node, int state) const;
  // An incident at the instant a stall ends still finds the job in the stall.
  [[nodiscard]] bool in_stall(Duration now) const { return now <= training_since_; }
  // Puts nodes that are usable by `due` into all places. returns whether one of them lacks its state.
  bool take_places(const Machines& machines, Duration due);
  void know_nodes(const Machines& machines);
  void settle(Duration now);

  BambooSpec spec_;
  int pipelines_ = 0;  // 0: stopped
  ShapedStep step_;
  std::vector<int> holder_;       // by place p·S + s: a node, -1: empty
  std::vector<int> place_count_;  // by node: number of places, 0, 1 or 2
  std::vector<int> place_;        // by node: its assigned place
  std::vector<int> state_;        // by node: its state, in addition to the next stage's; -1: none
  std::vector<int> arriving_;     // the same once the stall is over
  int holding_ = 0;               // pipelines that the states are those of
  Duration training_since_{};     // the end of the last stall
  bool global_ = true;            // was the last rendezvous global, or will the next be?
  bool started_ = false;
};

}  // namespace stagecraft
