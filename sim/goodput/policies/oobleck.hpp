// Oobleck: pipelines that lost nodes take other templates, and copy the missing layers from other pipelines.
//
//   loss       of a node that trains: the step in flight, detection, a reconfiguration, the copy of layers
//              that nodes newly hold. A process fault leaves its node behind without its state.
//   joins      at the next step end all nodes are composed anew where that pays: where the gain until the
//              next change, as it is expected, is longer than the stall. Else newcomers stand by, and take
//              the places of nodes that are lost. After a loss the same is asked: composed anew, or by the
//              rules of reconfiguration?
//   slow node  its stages take longer, and the step is what the slowest pipeline then takes.
//   announced  removal: a change without the node at one of the last step ends before it; nothing is lost.
//   fatal      a layer that no node holds any more: back to the last checkpoint, all nodes composed anew.
//   too few    nodes for one pipeline: stopped until there are enough; survivors keep their state meanwhile.
//
// A stall that another failure interrupts has moved nothing: the nodes hold the layers they held before it.
//
//   source     Jang et al., "Oobleck", SOSP 2023; docs/resilience.md, sections 5 and 5.6 (joins). With free
//              changes the throughput is the time average of X(n(t)): section 8.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "sim/goodput/never.hpp"
#include "sim/goodput/oobleck/planner.hpp"
#include "sim/goodput/policy.hpp"

namespace stagecraft {

// One planner for all repeats: each price is computed once. It outlives its policies.
class SharedPlanner {
 public:
  explicit SharedPlanner(OobleckSpec spec) : planner_(std::move(spec)) {}

  template <class Ask>
  auto ask(Ask&& question) {
    const std::scoped_lock lock(mutex_);
    return question(planner_);
  }
  // It never changes, so that nobody has to wait for it.
  [[nodiscard]] const OobleckSpec& spec() const { return planner_.spec(); }

 private:
  std::mutex mutex_;
  OobleckPlanner planner_;
};

struct OobleckPolicySpec {
  std::int64_t samples = 1;  // samples per step: the batch is kept
  Duration reconfigure{};    // time for processes, groups and planning; with copy_included all of a change
  bool copy_included = false;
  bool recompose = true;              // otherwise new nodes only stand by
  Duration between_changes = kNever;  // expected, from one incident to the next
  Duration least_step{};  // no step is shorter: X*. A mixed pipeline's cut can by luck beat those that X* is
                          // made of
};

class OobleckPolicy : public Policy {
 public:
  // requires a planner for at least as many nodes as the history has.
  OobleckPolicy(SharedPlanner& planner, OobleckPolicySpec spec) : planner_(planner), spec_(spec) {}

  Response on(const Incident& incident, const Machines& machines) override;
  Plan plan(const Situation& situation) override;

 private:
  struct Holder {
    NodeLayers layers;
    int life = 0;
  };
  // A layout, and the cost of the change to it.
  struct Change {
    OobleckLayout layout = {};
    Duration step{};
    Duration copy{};
    bool from_checkpoint = false;
  };

  [[nodiscard]] bool trains(int node) const;
  [[nodiscard]] bool in_stall(Duration now) const { return running_ && now < ready_; }
  void settle(Duration now);
  void lose_state(int node);
  [[nodiscard]] Duration step_of(const OobleckLayout& layout, const Machines& machines);
  [[nodiscard]] Response halt_if_it_trains(const Incident& incident);
  [[nodiscard]] Response slowed(const Machines& machines);

  [[nodiscard]] std::vector<int> usable(const Situation& situation, Duration by) const;
  [[nodiscard]] std::vector<NodeLayers> survivors(const Machines& machines) const;
  [[nodiscard]] OobleckLayout composed_anew(std::vector<int> nodes);
  [[nodiscard]] Change change_to(OobleckLayout layout, const Situation& situation);
  [[nodiscard]] bool pays(const Change& from, const Change& to, Duration more_stall) const;

  [[nodiscard]] Plan restart(const Situation& situation, bool from_checkpoint);
  [[nodiscard]] Plan after_loss(const Situation& situation, const std::vector<int>& lost);
  [[nodiscard]] Plan at_step_end(const Situation& situation);
  [[nodiscard]] Plan go_on(const Situation& situation);
  [[nodiscard]] Plan take(Change change, PlanStall stall, const Situation& situation);
  [[nodiscard]] Plan stop(Undo undo);
  [[nodiscard]] std::optional<Duration> next_review(const Situation& situation) const;

  SharedPlanner& planner_;
  OobleckPolicySpec spec_;
  OobleckLayout layout_;
  std::vector<bool> trains_;         // [node]
  std::vector<int> lives_;           // [node], when the layout was made
  std::vector<Holder> holders_;      // layers of each node, as of the last training
  std::map<int, Duration> leaving_;  // announced removals
  PlanStall stall_;
  Duration planned_{};       // start of the stall
  Duration ready_{};         // end of the stall
  Duration step_{};          // step of the current plan
  bool settled_ = true;      // no transfer is in progress: holders_ are those of layout_
  bool look_again_ = false;  // a node arrived during the stall
  bool running_ = false;
  bool started_ = false;
};

}  // namespace stagecraft
