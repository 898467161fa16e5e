#include "sim/goodput/policies/hot_spares.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/ids.hpp"
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
      lost_[as_index(seats_.place_of(incident.node))] = 1;
      return {.answer = stopped_ ? Answer::kNothing : Answer::kHalt};
    }
    case IncidentKind::kAnnounced:
      return {.answer = Answer::kCheckpoint};
    case IncidentKind::kAdd: {
      if (grows(machines, incident.time)) return {.answer = Answer::kCheckpointAndPlan};
      const bool enough = machines.up_count() >= spec_.nodes;
      return {.answer = stopped_ && enough ? Answer::kAtStepEnd : Answer::kNothing};
    }
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
      if (grows(machines, incident.time)) return {.answer = Answer::kCheckpointAndPlan};
      return ours && spec_.slow && !stopped_ ? slowed(incident, machines) : Response{};
  }
  return {};
}

bool HotSpares::is_well(int node, const Machines& machines, Duration by) const {
  return machines.due(node) <= by && machines.factor(node) < spec_.slow->notice;
}

int HotSpares::count_well(const Machines& machines, Duration by) const {
  return static_cast<int>(
      std::ranges::count_if(machines.in_order(), [&](int node) { return is_well(node, machines, by); }));
}

Duration HotSpares::cold_start(int nodes) const {
  return restart_time(spec_.restart, nodes * spec_.gpus_per_node);
}

HotSpares::Choice HotSpares::without_slow_nodes(int well) const {
  Choice choice{.pace = std::numeric_limits<double>::infinity()};
  if (!spec_.slow || !spec_.slow->restart || !spec_.smaller || well >= spec_.nodes || well < 1) return choice;
  choice.smaller = spec_.smaller(well);
  if (!choice.smaller) return choice;
  const double samples = static_cast<double>(spec_.samples) / static_cast<double>(choice.smaller->samples);
  choice.pace = to_seconds(choice.smaller->duration) * samples / to_seconds(spec_.step);
  return choice;
}

// A job that went on without its slow nodes, when all its places can be had again.
bool HotSpares::grows(const Machines& machines, Duration now) const {
  if (!choice_.smaller || stopped_ || now <= training_since_ || count_well(machines, now) < spec_.nodes)
    return false;
  return pays(spec_.slow->undisturbed, choice_.pace, 1,
              spec_.slow->checkpoint_cost + cold_start(spec_.nodes) + last_load_);
}

// The slowest of these nodes, as many as can be replaced from the pool.
std::vector<int> HotSpares::replaceable(std::vector<int> slow, const Machines& machines, Duration now) const {
  const auto waits = [&](int node) { return !seats_.has(node) && is_well(node, machines, now); };
  const auto pool = static_cast<std::size_t>(std::ranges::count_if(machines.in_order(), waits));
  std::ranges::stable_sort(slow, [&](int a, int b) { return machines.factor(a) > machines.factor(b); });
  slow.resize(std::min(slow.size(), pool));
  return slow;
}

Response HotSpares::slowed(const Incident& incident, const Machines& machines) {
  const SlowLadder& ladder = *spec_.slow;
  const double pace = pace_of(ladder, seats_, machines);
  const Response rebalanced = {.answer = Answer::kSlowDown, .factor = pace / planned_pace_};
  const bool in_stall = incident.time <= training_since_;
  if (incident.kind == IncidentKind::kNormal || in_stall || !leaving_.empty()) return rebalanced;
  const std::vector<int> slow = noticed(ladder, seats_, machines);
  if (slow.empty()) return rebalanced;
  const Response change{.answer = Answer::kCheckpointAndPlan, .factor = rebalanced.factor};
  if (ladder.exchange) {
    std::vector<int> leaving = replaceable(slow, machines, incident.time);
    const Duration exchange = ladder.checkpoint_cost + spec_.swap + last_load_;
    if (!leaving.empty() &&
        pays(ladder.remaining, pace, pace_of(ladder, seats_, machines, leaving), exchange)) {
      leaving_ = std::move(leaving);
      return change;
    }
  }
  const Choice without = without_slow_nodes(count_well(machines, incident.time));
  if (!without.smaller) return rebalanced;
  const Duration restart = ladder.checkpoint_cost + cold_start(without.smaller->nodes) + last_load_;
  return pays(ladder.remaining, pace * choice_.pace, without.pace, restart) ? change : rebalanced;
}

bool HotSpares::state_survives() const {
  const std::size_t places = seats_.nodes().size();
  if (std::count(lost_.begin(), lost_.end(), 1) == 0) return true;
  if (spec_.backup_distance > 0) {
    const auto distance = as_index(spec_.backup_distance);
    for (std::size_t place = 0; place < places; ++place)
      if (lost_[place] != 0 && lost_[(place + distance) % places] != 0) return false;
    return places > distance;
  }
  if (!spec_.holders) return false;
  const auto is_left = [&](int place) { return lost_[as_index(place)] == 0; };
  return std::ranges::all_of(spec_.holders(static_cast<int>(places)), [&](const std::vector<int>& of_state) {
    return std::ranges::any_of(of_state, is_left);
  });
}

// The whole job on the fastest nodes, or without those that are slow: whichever trains faster.
void HotSpares::seat(const Machines& machines, Duration now) {
  for (const int node : leaving_) seats_.leave(node);
  leaving_.clear();
  choice_ = {};
  if (!spec_.slow) {
    seats_.fill(spec_.nodes, machines);
    return;
  }
  // Seats all nodes anew: fast nodes replace slow ones.
  if (spec_.slow->exchange || spec_.slow->restart)
    for (const int node : noticed(*spec_.slow, seats_, machines)) seats_.leave(node);
  Seats fewer = seats_;
  seats_.fill(spec_.nodes, machines, spec_.slow->notice);
  const Choice without = without_slow_nodes(count_well(machines, now));
  if (!without.smaller || without.pace >= pace_of(*spec_.slow, seats_, machines)) return;
  choice_ = without;
  fewer.fill(choice_.smaller->nodes, machines, spec_.slow->notice);
  seats_ = std::move(fewer);
}

Plan HotSpares::plan(const Situation& situation) {
  const Machines& machines = situation.machines;
  const bool from_peers =
      spec_.state == StateSource::kPeer && started_ && !situation.corrupted && state_survives();
  Plan plan = {.undo = started_ && !from_peers ? Undo::kToCheckpoint : Undo::kNothing};
  stopped_ = machines.up_count() < spec_.nodes;
  if (situation.occasion == Occasion::kCheckpointed) cold_ = false;
  cold_ = cold_ || stopped_;
  if (stopped_) return plan;
  const bool was_smaller = choice_.smaller.has_value();
  seat(machines, situation.now);
  const bool smaller = choice_.smaller.has_value();
  cold_ = cold_ || was_smaller != smaller;
  plan.stall.wait = std::max(Duration{}, seats_.due(machines) - situation.now);
  if (started_) {
    plan.stall.reconfigure = cold_ ? cold_start(static_cast<int>(seats_.nodes().size())) : spec_.swap;
    plan.stall.state_transfer = last_load_ = from_peers ? spec_.peer_transfer : situation.load;
  }
  training_since_ = situation.now + plan.stall.total();
  started_ = true;
  hit_ = false;
  planned_pace_ = spec_.slow ? pace_of(*spec_.slow, seats_, machines) : 1;
  const Duration step = smaller ? choice_.smaller->duration : spec_.step;
  plan.step = {.duration = from_seconds(to_seconds(step) * planned_pace_),
               .samples = smaller ? choice_.smaller->samples : spec_.samples,
               .nodes = seats_.nodes(),
               .slowness_priced = spec_.slow.has_value()};
  return plan;
}

}  // namespace stagecraft
