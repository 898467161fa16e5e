#include "sim/goodput/policies/hot_spares.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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
      if (!hit_ && incident.time > training_since_) {
        std::fill(lost_.begin(), lost_.end(), char{0});
        cold_ = false;
      }
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
      return ours && spec_.slow && !stopped_ ? slowed(incident, machines) : Response{};
  }
  return {};
}

Response HotSpares::slowed(const Incident& incident, const Machines& machines) {
  const double pace = pace_of(*spec_.slow, seats_, machines);
  const Response rebalanced = {.answer = Answer::kSlowDown, .factor = pace / planned_pace_};
  const bool in_stall = incident.time <= training_since_;
  if (incident.kind == IncidentKind::kNormal || in_stall || !leaving_.empty()) return rebalanced;
  std::vector<int> slow = noticed(*spec_.slow, seats_, machines);
  const auto waits = [&](int node) {
    return !seats_.has(node) && machines.due(node) <= incident.time &&
           machines.factor(node) < spec_.slow->notice;
  };
  const auto pool =
      static_cast<std::size_t>(std::count_if(machines.in_order().begin(), machines.in_order().end(), waits));
  std::stable_sort(slow.begin(), slow.end(),
                   [&](int a, int b) { return machines.factor(a) > machines.factor(b); });
  slow.resize(std::min(slow.size(), pool));
  const Duration cost = spec_.slow->checkpoint_cost + spec_.swap + last_load_;
  if (slow.empty() || !pays(*spec_.slow, pace, pace_of(*spec_.slow, seats_, machines, slow), cost))
    return rebalanced;
  leaving_ = std::move(slow);
  return {.answer = Answer::kCheckpointAndPlan, .factor = rebalanced.factor};
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
  cold_ = cold_ || stopped_;
  if (stopped_) return plan;
  if (situation.occasion == Occasion::kCheckpointed)
    for (const int node : leaving_) seats_.leave(node);
  leaving_.clear();
  const double avoided = spec_.slow ? spec_.slow->notice : std::numeric_limits<double>::infinity();
  seats_.fill(spec_.nodes, machines, avoided);
  plan.wait = std::max(Duration{}, seats_.due(machines) - situation.now);
  if (started_) {
    plan.reconfigure = cold_ ? restart_time(spec_.restart, spec_.nodes * spec_.gpus_per_node) : spec_.swap;
    plan.state_transfer = last_load_ = from_peers ? spec_.peer_transfer : situation.load;
  }
  training_since_ = situation.now + plan.wait + plan.reconfigure + plan.state_transfer;
  started_ = true;
  hit_ = false;
  planned_pace_ = spec_.slow ? pace_of(*spec_.slow, seats_, machines) : 1;
  plan.step = {.duration = from_seconds(to_seconds(spec_.step) * planned_pace_),
               .samples = spec_.samples,
               .nodes = seats_.nodes(),
               .slowness_priced = spec_.slow.has_value()};
  return plan;
}

}  // namespace stagecraft
