#include "sim/goodput/policies/varuna.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/restart_time.hpp"

namespace stagecraft {

Varuna::Varuna(VarunaSpec spec) : spec_(std::move(spec)) {
  SC_CHECK(spec_.nodes >= 1 && spec_.shape && !spec_.restart.empty(), "a shape for every number of nodes");
}

Response Varuna::on(const Incident& incident, const Machines& machines) {
  leaving_.resize(as_index(machines.count()), 0);
  char& leaving = leaving_[as_index(incident.node)];
  switch (incident.kind) {
    case IncidentKind::kRemove:
    case IncidentKind::kFault:
    case IncidentKind::kCorruption:
      if (incident.kind == IncidentKind::kRemove) leaving = 0;
      return trains(incident.node) ? failed(incident) : Response{};
    case IncidentKind::kAnnounced:
      leaving = 1;
      announced_ = announced_ || trains(incident.node);
      return {.answer = trains(incident.node) ? Answer::kCheckpointAndPlan : Answer::kNothing};
    case IncidentKind::kAdd: {
      const auto shape = best(staying(machines));
      if (!shape) return {};
      if (!shape_) return {.answer = Answer::kAtStepEnd};
      if (rate_of(*shape) <= rate_of(*shape_)) return {};
      // It is created while the job restarts.
      return {.answer = Answer::kCheckpointAndPlan, .not_before = incident.due - restart(*shape)};
    }
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
      return {};
  }
  return {};
}

Response Varuna::failed(const Incident& incident) {
  const bool announced = incident.kind == IncidentKind::kRemove && spec_.notice > Duration{} &&
                         spec_.checkpoint_cost <= spec_.notice;
  if (announced) {
    saved_ = true;
    return {.answer = Answer::kHalt, .detect = Duration{}};
  }
  unsaved_ = true;
  return {.answer = Answer::kHalt, .detect = incident.detect + spec_.transient_wait};
}

Plan Varuna::plan(const Situation& situation) {
  const Machines& machines = situation.machines;
  leaving_.resize(as_index(machines.count()), 0);
  const bool saved = situation.occasion == Occasion::kCheckpointed || (saved_ && !unsaved_);
  Plan plan{.undo = started_ && !saved ? Undo::kToCheckpoint : Undo::kNothing};
  nodes_ = staying(machines);
  const std::optional<ShapedStep> before = std::exchange(shape_, best(nodes_));
  if (shape_) {
    nodes_.resize(as_index(shape_->nodes));
    plan.step = StepPlan{.duration = shape_->duration, .samples = shape_->samples, .nodes = nodes_};
    const bool has_left = situation.occasion == Occasion::kCheckpointed && !announced_ && shape_ == before;
    if (has_left) return plan;  // whom the checkpoint was for
    Duration due{};
    for (const int node : nodes_) due = std::max(due, machines.due(node));
    if (started_) {
      plan.stall.reconfigure = restart(*shape_);
      if (saved && (saved_ || announced_)) plan.stall.reconfigure += spec_.announced_wait;
      if (saved_ && !unsaved_) plan.stall.reconfigure += spec_.checkpoint_cost;
      plan.stall.state_transfer = situation.load;
    }
    // Nodes are created while the job waits and restarts.
    plan.stall.wait = std::max(Duration{}, due - situation.now - plan.stall.reconfigure);
    started_ = true;
  } else {
    nodes_.clear();
  }
  announced_ = saved_ = unsaved_ = false;
  return plan;
}

std::vector<int> Varuna::staying(const Machines& machines) const {
  std::vector<int> nodes;
  for (const int node : machines.in_order())
    if (leaving_[as_index(node)] == 0) nodes.push_back(node);
  return nodes;
}

std::optional<ShapedStep> Varuna::best(const std::vector<int>& nodes) const {
  return spec_.shape(std::min(static_cast<int>(nodes.size()), spec_.nodes));
}

Duration Varuna::restart(const ShapedStep& shape) const {
  return restart_time(spec_.restart, shape.nodes * spec_.gpus_per_node);
}

bool Varuna::trains(int node) const {
  return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
}

}  // namespace stagecraft
