// Checkpoint-restart: every failure stops the whole job, which restarts from its last checkpoint.
//
// Without checkpoints (JobSpec::checkpointing absent) this policy is "none": every failure sends the job back
// to its first step.
//
//   failure      of a node that trains: detection, restart_time, loading, and on it goes
//   lost node    replaced by the scheduler while the job restarts; or waited for; or done without, in the
//                best shape that the nodes that are up allow
//   newcomer     ends a wait. Done without: the job takes it in when what that gains until the next failure
//                is expected exceeds the checkpoint, restart and load that it costs; else at the next restart
//   announced    removal: a checkpoint just before
//   source       docs/resilience.md, section 4.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/never.hpp"
#include "sim/goodput/policies/seats.hpp"
#include "sim/goodput/policy.hpp"

namespace stagecraft {

struct CheckpointRestartSpec {
  int nodes = 0;  // nodes of the full job
  LostNode lost = LostNode::kReplaced;
  std::vector<std::pair<int, Duration>> restart;  // restart time by number of GPUs
  int gpus_per_node = 1;
  ShapeOf shape;
  Duration between_failures = kNever;  // expected, of the job; kDoneWithout
  Duration checkpoint_cost{};          // cost of a checkpoint on demand; kDoneWithout
};

class CheckpointRestart : public Policy {
 public:
  explicit CheckpointRestart(CheckpointRestartSpec spec) : spec_(std::move(spec)) {}

  Response on(const Incident& incident, const Machines& machines) override;
  Plan plan(const Situation& situation) override;
  [[nodiscard]] bool uses(int node) const override { return seats_.has(node); }

 private:
  [[nodiscard]] std::optional<ShapedStep> best_shape(int up) const;
  [[nodiscard]] bool pays(const ShapedStep& more) const;
  [[nodiscard]] StepPlan step() const;  // of shape_ on the seats

  CheckpointRestartSpec spec_;
  Seats seats_;
  std::optional<ShapedStep> shape_;  // absent: stopped
  bool started_ = false;
  Duration training_since_{};
  Duration last_load_{};
};

}  // namespace stagecraft
