#include "sim/goodput/policies/hot_spares.hpp"

#include <algorithm>

#include "sim/goodput/restart_time.hpp"

namespace stagecraft {

Response HotSpares::on(const Incident& incident, const Machines& machines) {
  const bool ours = seats_.has(incident.node);
  switch (incident.kind) {
    case IncidentKind::kRemove:
    case IncidentKind::kFault:
    case IncidentKind::kCorruption: {
      if (!ours) return {};
      // A stall that this incident strikes has restored nothing yet.
      if (!hit_ && incident.time > training_since_) std::fill(lost_.begin(), lost_.end(), char{0});
      hit_ = true;
      lost_[static_cast<std::size_t>(seats_.place_of(incident.node))] = 1;
      return {.answer = stopped_ ? Answer::kNothing : Answer::kHalt};
    }
    case IncidentKind::kAnnounced:
      return {.answer = ours && !stopped_ ? Answer::kCheckpoint : Answer::kNothing};
    case IncidentKind::kAdd: {
      const bool enough = static_cast<int>(machines.in_order().size()) >= spec_.nodes;
      return {.answer = stopped_ && enough ? Answer::kAtStepEnd : Answer::kNothing};
    }
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
      break;
  }
  return {};
}

bool HotSpares::state_survives() const {
  if (spec_.replica_nodes == 0) return std::count(lost_.begin(), lost_.end(), 1) == 0;
  std::vector<char> alive(static_cast<std::size_t>(spec_.replica_nodes));
  for (std::size_t place = 0; place < lost_.size(); ++place)
    if (lost_[place] == 0) alive[place % alive.size()] = 1;
  return std::count(alive.begin(), alive.end(), 0) == 0;
}

Plan HotSpares::plan(const Situation& situation) {
  const Machines& machines = situation.machines;
  const bool from_peers =
      spec_.state == StateSource::kPeer && started_ && !situation.corrupted && state_survives();
  Plan plan = {.undo = started_ && !from_peers ? Undo::kToCheckpoint : Undo::kNothing};
  stopped_ = static_cast<int>(machines.in_order().size()) < spec_.nodes;
  if (stopped_) return plan;
  const int swapped = seats_.fill(spec_.nodes, machines);
  plan.wait = std::max(Duration{}, seats_.due(machines) - situation.now);
  if (started_) {
    plan.reconfigure = restart_time(spec_.restart, spec_.nodes * spec_.gpus_per_node);
    if (swapped > 0) plan.reconfigure += spec_.swap;
    plan.state_transfer = from_peers ? spec_.peer_transfer : situation.load;
  }
  training_since_ = situation.now + plan.wait + plan.reconfigure + plan.state_transfer;
  started_ = true;
  hit_ = false;
  plan.step = {.duration = spec_.step, .samples = spec_.samples, .nodes = seats_.nodes()};
  return plan;
}

}  // namespace stagecraft
