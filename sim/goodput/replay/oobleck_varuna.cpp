#include "sim/goodput/replay/oobleck_varuna.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "sim/goodput/replay/engine.hpp"

namespace stagecraft {
namespace {

class GlobalRestartReplay : public ReplayEngine {
 public:
  GlobalRestartReplay(const std::vector<NodeChange>& changes, const ReplayRules& rules,
                      const GlobalRestart& policy)
      : ReplayEngine(changes, rules), policy_(policy), rendezvous_(policy.rendezvous) {}

 protected:
  Duration assign(const std::vector<int>& list) override {
    const std::size_t pipeline = static_cast<std::size_t>(policy_.pipeline_nodes);
    const std::size_t running = list.size() / pipeline * pipeline;
    for (std::size_t i = 0; i < running; ++i) set_running(list[i]);
    if (running == 0) return Duration{};
    const int nodes = usable_nodes();
    if (!policy_.rendezvous_by_nodes.empty()) rendezvous_ = by_nodes(nodes);
    return step_ = policy_.step(nodes);
  }

  Duration rendezvous_time(bool /*global*/) const override { return rendezvous_; }

  void removed(Duration now, int /*node*/, ReplayNode /*was*/) override {
    removal_since_checkpoint_ = true;
    if (checkpoints()) {
      for (auto i = static_cast<std::size_t>(saved_); i < replay().steps.size(); ++i)
        replay().steps[i].kept = false;
      cut_pause(now);
    }
    begin(now, true);
  }

  void step_ended(Duration now) override {
    record_step(now);
    ++completed_;
    if (checkpoints() && (completed_ % policy_.checkpoint_every == 0 || removal_since_checkpoint_))
      now = write_checkpoint(now);
    next_step(now, step_);
  }

  // A checkpoint of a shape that is gone is not usable.
  void checkpoint_completed(const ReplayEvent& event) override {
    if (!published() && event.version == version()) saved_ = event.steps;
  }

 private:
  [[nodiscard]] bool checkpoints() const { return policy_.checkpoint_every > 0; }

  [[nodiscard]] Duration by_nodes(int nodes) const {
    const auto& table = policy_.rendezvous_by_nodes;
    nodes = std::clamp(nodes, table.begin()->first, table.rbegin()->first);
    const auto row = table.find(nodes);
    SC_CHECK(row != table.end(), "a table of rendezvous times without gaps");
    return row->second;
  }

  // returns the time at which training goes on.
  Duration write_checkpoint(Duration now) {
    removal_since_checkpoint_ = false;
    const Duration resumed = now + policy_.checkpoint_write;
    if (policy_.checkpoint_write > Duration{}) replay().checkpoints.push_back({.start = now, .end = resumed});
    const std::int64_t covered = std::ssize(replay().steps);
    if (policy_.checkpoint_write == Duration{}) {
      saved_ = covered;
      return resumed;
    }
    // The next one may begin before this one is usable.
    push({.time = resumed + policy_.checkpoint_write,
          .kind = ReplayEventKind::kCheckpointComplete,
          .version = version(),
          .steps = covered});
    if (published()) decide_by_storage_order(covered);
    return resumed;
  }

  void decide_by_storage_order(std::int64_t covered) {
    events().rebuild();
    const auto& stored = events().storage();
    const auto first = std::find_if(stored.begin(), stored.end(), [](const ReplayEvent& event) {
      return event.kind == ReplayEventKind::kRemove || event.kind == ReplayEventKind::kCheckpointComplete;
    });
    SC_CHECK(first != stored.end(), "the checkpoint's own completion is among the events");
    if (first->kind == ReplayEventKind::kCheckpointComplete) {
      saved_ = covered;
      return;
    }
    completed_ = std::max<std::int64_t>(0, completed_ - policy_.checkpoint_every);
    std::vector<ReplayStep>& steps = replay().steps;
    const std::size_t undone = std::min(steps.size(), static_cast<std::size_t>(policy_.checkpoint_every));
    for (std::size_t i = steps.size() - undone; i < steps.size(); ++i) steps[i].kept = false;
  }

  void cut_pause(Duration now) {
    if (published() || replay().checkpoints.empty()) return;
    Replay::Pause& last = replay().checkpoints.back();
    last.end = std::min(last.end, now);
  }

  const GlobalRestart& policy_;
  Duration rendezvous_;
  Duration step_{};
  std::int64_t completed_ = 0;
  std::int64_t saved_ = 0;  // recorded steps covered by the last usable checkpoint
  bool removal_since_checkpoint_ = false;
};

}  // namespace

Replay replay_global_restart(const std::vector<NodeChange>& changes, const ReplayRules& rules,
                             const GlobalRestart& policy) {
  SC_CHECK(policy.pipeline_nodes >= 1 && policy.step, "a shape and its step");
  return GlobalRestartReplay(changes, rules, policy).run();
}

}  // namespace stagecraft
