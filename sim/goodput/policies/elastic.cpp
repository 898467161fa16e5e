#include "sim/goodput/policies/elastic.hpp"

#include <algorithm>
#include <cstddef>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/restart_time.hpp"

namespace stagecraft {

ElasticDataParallel::ElasticDataParallel(ElasticSpec spec) : spec_(std::move(spec)) {
  SC_CHECK(spec_.replicas >= 1 && spec_.replica_nodes >= 1, "a job has a replica, a replica has a node");
  SC_CHECK(spec_.min_replicas >= 1 && spec_.min_replicas <= spec_.replicas,
           "the job waits for no more replicas than it has");
  nodes_.assign(as_index(spec_.replicas) * as_index(spec_.replica_nodes), -1);
  replicas_.resize(as_index(spec_.replicas));
}

int ElasticDataParallel::count(State state) const {
  return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(),
                                        [&](const Replica& replica) { return replica.state == state; }));
}

ElasticDataParallel::Replica* ElasticDataParallel::replica_of(int node) {
  const auto at = as_index(node);
  if (at >= places_.size() || places_[at] < 0) return nullptr;
  return &replica_at(as_index(places_[at]));
}

Response ElasticDataParallel::on(const Incident& incident, const Machines& machines) {
  switch (incident.kind) {
    case IncidentKind::kRemove:
    case IncidentKind::kFault:
      return lose(incident);
    case IncidentKind::kCorruption: {
      const Replica* replica = replica_of(incident.node);
      const bool trains = replica != nullptr && replica->state == State::kTrains && !stopped_;
      return {.answer = trains ? Answer::kHalt : Answer::kNothing};
    }
    case IncidentKind::kAdd: {
      const int before = count(State::kShort);
      seat_nodes(machines, std::max(incident.time, ready()));
      return {.answer = count(State::kShort) < before ? Answer::kAtStepEnd : Answer::kNothing};
    }
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
    case IncidentKind::kAnnounced:
      break;
  }
  return {};
}

Response ElasticDataParallel::lose(const Incident& incident) {
  Replica* replica = replica_of(incident.node);
  if (replica == nullptr) return {};
  const bool trained = replica->state == State::kTrains;
  if (incident.kind == IncidentKind::kRemove) {
    int& place = places_[as_index(incident.node)];
    nodes_[as_index(place)] = -1;
    place = -1;
    replica->state = State::kShort;
  } else if (replica->state != State::kShort) {
    *replica = {.state = State::kReloads, .reloaded = incident.time + spec_.reload, .begun = incident.time};
  }
  if (!trained || stopped_) return {};
  // A spare may take the place when the plan is made. Failures detected together are known with the first, but
  // each begins the stall again, as one after the detection does.
  if (incident.time > detected_ || detected_from_ == detected_) {
    detected_from_ = incident.time;
    detected_ = incident.time + std::min(incident.detect, spec_.stall);
  }
  stalled_from_ = incident.time;
  return {.answer = Answer::kHalt, .detect = detected_ - incident.time};
}

void ElasticDataParallel::seat_nodes(const Machines& machines, Duration from) {
  places_.resize(as_index(machines.count()), -1);
  auto next = machines.in_order().begin();
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (nodes_[place] >= 0) continue;
    while (next != machines.in_order().end() && places_[as_index(*next)] >= 0) ++next;
    if (next == machines.in_order().end()) break;
    nodes_[place] = *next;
    places_[as_index(*next)] = static_cast<int>(place);
  }
  const auto size = static_cast<std::ptrdiff_t>(spec_.replica_nodes);
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    if (replicas_[r].state != State::kShort) continue;
    const auto first = nodes_.begin() + static_cast<std::ptrdiff_t>(r) * size;
    if (std::find(first, first + size, -1) != first + size) continue;
    Duration usable = from;
    std::for_each(first, first + size, [&](int node) { usable = std::max(usable, machines.due(node)); });
    replicas_[r] = {.state = State::kReloads, .reloaded = usable + spec_.reload, .begun = usable};
  }
}

// When so many replicas have reloaded.
Duration ElasticDataParallel::reloaded_by(int replicas) const {
  std::vector<Duration> times;
  for (const Replica& replica : replicas_)
    if (replica.state == State::kReloads) times.push_back(replica.reloaded);
  std::ranges::sort(times);
  return times[as_index(replicas) - 1];
}

void ElasticDataParallel::admit(Duration by) {
  for (Replica& replica : replicas_)
    if (replica.state == State::kReloads && replica.reloaded <= by) replica.state = State::kTrains;
}

Plan ElasticDataParallel::plan(const Situation& situation) {
  const Duration now = situation.now;
  const bool failed = situation.occasion == Occasion::kFailure;
  if (!failed && !situation.corrupted && !stopped_ && now < ready()) return rest_of_stall(now);
  stall_ = {};
  planned_ = now;
  const Duration stall =
      failed ? std::max(Duration{}, spec_.stall - (detected_ - stalled_from_)) : Duration{};
  // Replicas that reload since the failure, or did so still when it came, do so after the stall.
  if (failed)
    for (Replica& replica : replicas_)
      if (replica.state == State::kReloads &&
          (replica.reloaded > detected_from_ || replica.begun >= detected_from_))
        replica.reloaded = std::max(replica.reloaded, now + stall + spec_.reload);
  detected_from_ = stalled_from_ = detected_;
  seat_nodes(situation.machines, now + stall);
  if (!started_ || situation.corrupted || count(State::kTrains) == 0) return from_checkpoint(situation);

  const int before = count(State::kTrains);
  admit(now);
  Plan plan = {.stall = {.reconfigure = stall}};
  const int missing = spec_.min_replicas - count(State::kTrains);
  stopped_ = missing > count(State::kReloads);
  if (stopped_) return {};
  if (missing > 0) {
    const Duration by = reloaded_by(missing);
    plan.stall.wait = std::max(Duration{}, by - now);
    admit(by);
  }
  if (count(State::kTrains) > before && !failed) plan.stall.reconfigure += spec_.rejoin;
  return train(std::move(plan), now);
}

// No replica holds a valid state: whole replicas load the checkpoint.
Plan ElasticDataParallel::from_checkpoint(const Situation& situation) {
  Plan plan = {.undo = started_ ? Undo::kToCheckpoint : Undo::kNothing};
  const int whole = spec_.replicas - count(State::kShort);
  stopped_ = whole < spec_.min_replicas;
  if (stopped_) return plan;
  for (Replica& replica : replicas_)
    if (replica.state != State::kShort) replica.state = State::kTrains;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (replica_at(place).state != State::kTrains) continue;
    plan.stall.wait = std::max(plan.stall.wait, situation.machines.due(nodes_[place]) - situation.now);
  }
  if (started_) {
    plan.stall.reconfigure = restart_time(spec_.restart, whole * spec_.replica_nodes * spec_.gpus_per_node);
    plan.stall.state_transfer = situation.load;
  }
  started_ = true;
  return train(std::move(plan), situation.now);
}

// A node has arrived in the stall, whose replica reloads after it: all else stays.
Plan ElasticDataParallel::rest_of_stall(Duration now) {
  return train({.stall = stall_.after(now - planned_)}, now);
}

Plan ElasticDataParallel::train(Plan plan, Duration now) {
  stall_ = plan.stall;
  planned_ = now;
  const int replicas = count(State::kTrains);
  const std::optional<ShapedStep> shape = spec_.shape(replicas * spec_.replica_nodes);
  SC_CHECK(shape.has_value(), "as many replicas as the policy allows can train");
  StepPlan step = {.duration = shape->duration, .samples = shape->samples, .nodes = {}};
  for (std::size_t place = 0; place < nodes_.size(); ++place)
    if (replica_at(place).state == State::kTrains) step.nodes.push_back(nodes_[place]);
  plan.step = std::move(step);
  const Duration begin = now + plan.stall.total();
  for (const Replica& replica : replicas_)
    if (replica.state == State::kReloads)
      plan.review =
          std::min(plan.review.value_or(Duration::max()), std::max(Duration{}, replica.reloaded - begin));
  return plan;
}

}  // namespace stagecraft
