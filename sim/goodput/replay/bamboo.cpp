#include "sim/goodput/replay/bamboo.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/check.hpp"
#include "sim/goodput/pipeline_ring.hpp"
#include "sim/goodput/replay/engine.hpp"

namespace stagecraft {
namespace {

// The simulators count in whole milliseconds.
Duration whole_milliseconds(double factor, Duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time);
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::floor(factor * static_cast<double>(ms.count()))));
}

class BambooReplay : public ReplayEngine {
 public:
  BambooReplay(const std::vector<NodeChange>& changes, const ReplayRules& rules,
               const RedundantPipelines& policy)
      : ReplayEngine(changes, rules), policy_(policy) {
    int nodes = 0;
    for (const NodeChange& change : changes) nodes = std::max(nodes, change.node + 1);
    place_count_.assign(as_index(nodes), 0);
    place_.assign(as_index(nodes), -1);
  }

 protected:
  Duration assign(const std::vector<int>& list) override {
    pipelines_ = static_cast<int>(list.size()) / policy_.stages;
    const int running = pipelines_ * policy_.stages;
    place_count_.assign(place_count_.size(), 0);
    holder_.assign(list.begin(), list.begin() + running);
    for (int place = 0; place < running; ++place) {
      const int node = list[as_index(place)];
      place_count_[as_index(node)] = 1;
      place_[as_index(node)] = place;
      set_running(node);
    }
    counted_waiting_ = static_cast<int>(list.size()) - running;
    slowed_.reset();
    if (pipelines_ == 0) return Duration{};
    return step_ = policy_.step(pipelines_, usable_nodes());
  }

  Duration rendezvous_time(bool global) const override {
    return global ? policy_.global_rendezvous : policy_.local_rendezvous;
  }

  void ready_while_running() override { ++counted_waiting_; }

  void removed(Duration now, int node, ReplayNode was) override {
    const bool ran = was == ReplayNode::kRunning;
    const bool fatal = ran && !taken_over(node);
    if (fatal) ++replay().fatal;
    if (!published() && state() == ReplayState::kRendezvous) return begin(now, global_rendezvous() || fatal);
    if (fatal) return begin(now, true);
    if (state() != ReplayState::kRunning || slowed_ || !(ran || published())) return;
    slowed_ = Slowed{.completed_steps = replay().steps.size(), .since = now};
    step_ = whole_milliseconds(policy_.slowdown, step_);
  }

  void step_ended(Duration now) override {
    if (slowed_ && !slowed_->prolonged && slowed_->completed_steps == replay().steps.size()) {
      slowed_->prolonged = true;
      return prolong_step(now + whole_milliseconds(policy_.slowdown - 1, now - slowed_->since));
    }
    record_step(now);
    if (wants_rebalance() && (published() || state() == ReplayState::kRunning)) return begin(now, false);
    next_step(now, step_);
  }

 private:
  // The first loss since the last rendezvous slows all steps.
  struct Slowed {
    std::size_t completed_steps = 0;
    Duration since{};
    bool prolonged = false;
  };

  // Does training survive the loss of a running node?
  bool taken_over(int lost) {
    const int places = place_count_[as_index(lost)];
    place_count_[as_index(lost)] = 0;
    for (int& holder : holder_)
      if (holder == lost) holder = -1;
    if (places != 1) return false;
    const int place = place_[as_index(lost)];
    const int shadow = holder_[as_index(place_before(place, policy_.stages))];
    if (shadow < 0) return published();
    if (place_count_[as_index(shadow)] == 2) return false;
    holder_[as_index(place)] = shadow;
    place_count_[as_index(shadow)] = 2;
    return true;
  }

  [[nodiscard]] bool wants_rebalance() const {
    const int overloaded = static_cast<int>(std::count(place_count_.begin(), place_count_.end(), 2));
    const int waiting = published() ? counted_waiting_ : ready_nodes();
    const int active = pipelines_ * policy_.stages - overloaded;
    return (overloaded > 0 && waiting >= overloaded) ||
           (overloaded > 0 && 2.0 * overloaded / active > policy_.rebalance_threshold) ||
           (active + waiting) / policy_.stages > pipelines_;
  }

  const RedundantPipelines& policy_;
  int pipelines_ = 0;
  std::vector<int> holder_;       // [place] node, -1: empty
  std::vector<int> place_count_;  // [node] how many, 0..2
  std::vector<int> place_;        // [node] the one it was given; of a node that runs
  int counted_waiting_ = 0;       // published rules
  Duration step_{};
  std::optional<Slowed> slowed_;
};

}  // namespace

Replay replay_bamboo(const std::vector<NodeChange>& changes, const ReplayRules& rules,
                     const RedundantPipelines& policy) {
  SC_CHECK(policy.stages >= 1 && policy.step && policy.slowdown >= 1, "a shape and its step");
  return BambooReplay(changes, rules, policy).run();
}

}  // namespace stagecraft
