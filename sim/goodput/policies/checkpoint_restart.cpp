#include "sim/goodput/policies/checkpoint_restart.hpp"

#include <algorithm>
#include <iterator>

#include "sim/goodput/restart_time.hpp"

namespace stagecraft {

// The best shape of the nodes that are up; always the full shape where lost nodes are replaced.
std::optional<ShapedStep> CheckpointRestart::best_shape(int up) const {
  switch (spec_.lost) {
    case LostNode::kReplaced:
      return spec_.shape(spec_.nodes);
    case LostNode::kWaitedFor:
      return up < spec_.nodes ? std::nullopt : spec_.shape(spec_.nodes);
    case LostNode::kDoneWithout:
      break;
  }
  return spec_.shape(std::min(up, spec_.nodes));
}

// Does the larger shape gain more until the next failure than the change costs?
bool CheckpointRestart::pays(const ShapedStep& more) const {
  const double gain = 1 - rate_of(*shape_) / rate_of(more);
  const Duration cost =
      spec_.checkpoint_cost + last_load_ + restart_time(spec_.restart, more.nodes * spec_.gpus_per_node);
  return gain * to_seconds(spec_.between_failures) > to_seconds(cost);
}

Response CheckpointRestart::on(const Incident& incident, const Machines& machines) {
  switch (incident.kind) {
    case IncidentKind::kRemove:
    case IncidentKind::kFault:
    case IncidentKind::kCorruption:
      return {.answer = seats_.has(incident.node) ? Answer::kHalt : Answer::kNothing};
    case IncidentKind::kAnnounced:
      return {.answer = Answer::kCheckpoint};
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
      return {};
    case IncidentKind::kAdd:
      break;
  }
  if (spec_.lost == LostNode::kReplaced && shape_)  // a place that nobody took: whoever is back has it
    return {.answer = std::ssize(seats_.nodes()) < shape_->nodes ? Answer::kAtStepEnd : Answer::kNothing};
  const auto shape = best_shape(machines.up_count());
  if (!shape) return {};
  if (!shape_) return {.answer = Answer::kAtStepEnd};
  const bool better = shape->nodes != shape_->nodes && rate_of(*shape) > rate_of(*shape_) && pays(*shape);
  return {.answer = better ? Answer::kCheckpointAndPlan : Answer::kNothing, .not_before = incident.due};
}

StepPlan CheckpointRestart::step() const {
  return {.duration = shape_->duration, .samples = shape_->samples, .nodes = seats_.nodes()};
}

Plan CheckpointRestart::plan(const Situation& situation) {
  const Machines& machines = situation.machines;
  const bool trains = shape_ && situation.now >= training_since_;
  if (spec_.lost == LostNode::kReplaced && trains && situation.occasion == Occasion::kStepEnd) {
    seats_.fill(shape_->nodes, machines);  // a place is taken again, and the job goes on
    return {.step = step()};
  }
  const std::optional<ShapedStep> best = best_shape(machines.up_count());
  if (situation.occasion == Occasion::kCheckpointed && best == shape_)
    return {.step = step()};  // it has left
  Plan plan = {.undo = started_ ? Undo::kToCheckpoint : Undo::kNothing};
  shape_ = best;
  if (!shape_) {
    seats_.clear();
    return plan;
  }
  seats_.fill(shape_->nodes, machines);
  plan.stall.wait = std::max(Duration{}, seats_.due(machines) - situation.now);
  if (started_) {
    plan.stall.reconfigure = restart_time(spec_.restart, shape_->nodes * spec_.gpus_per_node);
    plan.stall.state_transfer = last_load_ = situation.load;
  }
  started_ = true;
  training_since_ = situation.now + plan.stall.total();
  plan.step = step();
  return plan;
}

}  // namespace stagecraft
