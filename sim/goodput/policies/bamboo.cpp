#include "sim/goodput/policies/bamboo.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/never.hpp"
#include "sim/goodput/pipeline_ring.hpp"

namespace stagecraft {

Bamboo::Bamboo(BambooSpec spec) : spec_(std::move(spec)) {
  SC_CHECK(spec_.stages >= 1 && spec_.pipelines >= 1 && spec_.slowdown >= 1 && spec_.step,
           "a shape and its step");
}

Response Bamboo::on(const Incident& incident, const Machines& machines) {
  know_nodes(machines);
  settle(incident.time);
  switch (incident.kind) {
    case IncidentKind::kRemove:
    case IncidentKind::kFault:
      return lost(incident, machines);
    case IncidentKind::kCorruption:
      if (place_count_[as_index(incident.node)] == 0) return {};
      return halt();
    case IncidentKind::kAdd: {
      // Under creation or in a stall: the review after it will see the node.
      const bool stalled = pipelines_ > 0 && in_stall(incident.time);
      return {.answer = stalled ? Answer::kNothing : Answer::kAtStepEnd};
    }
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
    case IncidentKind::kAnnounced:
      return {};
  }
  return {};
}

Response Bamboo::lost(const Incident& incident, const Machines& machines) {
  state_[as_index(incident.node)] = arriving_[as_index(incident.node)] = -1;
  if (place_count_[as_index(incident.node)] == 0) return {};
  if (!taken_over(incident.node)) return halt();
  if (in_stall(incident.time)) {
    training_since_ = std::max(training_since_, incident.time + incident.detect);
    return {.answer = Answer::kAtStepEnd, .detect = incident.detect};
  }
  const bool soon = wants_rebalance(machines, incident.time);
  return {.answer = soon ? Answer::kAtStepEnd : Answer::kSlowDown,
          .detect = incident.detect,
          .factor = spec_.slowdown};
}

// No node receives a state from now until the next plan.
Response Bamboo::halt() {
  global_ = true;
  training_since_ = kNever;
  return {.answer = Answer::kHalt};
}

bool Bamboo::taken_over(int node) {
  const int places = place_count_[as_index(node)];
  place_count_[as_index(node)] = 0;
  std::replace(holder_.begin(), holder_.end(), node, -1);
  if (places != 1) return false;
  const int place = place_[as_index(node)];
  const int shadow = holder_[as_index(place_before(place, spec_.stages))];
  if (shadow < 0 || place_count_[as_index(shadow)] == 2) return false;
  holder_[as_index(place)] = shadow;
  place_count_[as_index(shadow)] = 2;
  return true;
}

int Bamboo::overloaded() const {
  return static_cast<int>(std::count(place_count_.begin(), place_count_.end(), 2));
}

bool Bamboo::wants_rebalance(const Machines& machines, Duration now) const {
  int waiting = 0;
  for (const int node : machines.in_order())
    if (place_count_[as_index(node)] == 0 && machines.due(node) <= now) ++waiting;
  const int active = pipelines_ * spec_.stages - overloaded();
  if (overloaded() > 0 &&
      (waiting >= overloaded() || 2.0 * overloaded() / active > spec_.rebalance_threshold))
    return true;
  const auto more = best(active + waiting);
  return more && more->first > pipelines_;
}

std::optional<std::pair<int, ShapedStep>> Bamboo::best(int nodes) const {
  for (int pipelines = std::min(nodes / spec_.stages, spec_.pipelines); pipelines > 0; --pipelines)
    if (const std::optional<ShapedStep> step = spec_.step(pipelines)) return std::pair(pipelines, *step);
  return std::nullopt;
}

bool Bamboo::state_survives() const {
  std::vector<char> alive(as_index((spec_.copies ? 1 : std::max(holding_, 1)) * spec_.stages), 0);
  for (const int state : state_)
    if (state >= 0) alive[as_index(state)] = alive[as_index(place_after(state, spec_.stages))] = 1;
  return std::find(alive.begin(), alive.end(), 0) == alive.end();
}

Plan Bamboo::plan(const Situation& situation) {
  know_nodes(situation.machines);
  settle(situation.now);
  const bool running = pipelines_ > 0 && !in_stall(situation.now) && situation.occasion != Occasion::kFailure;
  if (running && !situation.corrupted && !wants_rebalance(situation.machines, situation.now))
    return go_on(situation);
  if (running) global_ = false;
  if (situation.corrupted) global_ = true;
  return rendezvous(situation);
}

Plan Bamboo::go_on(const Situation& situation) const {
  Plan plan;
  const Duration duration = overloaded() > 0 ? scaled(step_.duration, spec_.slowdown) : step_.duration;
  plan.step = StepPlan{.duration = duration, .samples = step_.samples, .nodes = {}};
  for (int place = 0; place < pipelines_ * spec_.stages; ++place) {
    const int node = holder_[as_index(place)];
    // Skips places that a shadow has taken over.
    if (place_[as_index(node)] == place) plan.step->nodes.push_back(node);
  }
  plan.review = situation.machines.until_next_due(situation.now);
  return plan;
}

Plan Bamboo::rendezvous(const Situation& situation) {
  const Machines& machines = situation.machines;
  const std::vector<Duration> dues = machines.dues(situation.now);
  // Plans with the present nodes; where they are too few, with the next nodes to arrive.
  const int there =
      static_cast<int>(std::upper_bound(dues.begin(), dues.end(), situation.now) - dues.begin());
  auto shape = best(there);
  Duration due = situation.now;
  if (!shape && best(static_cast<int>(dues.size()))) {
    int nodes = there + 1;
    while (!(shape = best(nodes))) ++nodes;
    due = dues[as_index(nodes - 1)];
  }
  const bool survives = !started_ || (state_survives() && !situation.corrupted);
  Plan plan{.undo = survives ? Undo::kNothing : Undo::kToCheckpoint};
  if (!shape) {
    pipelines_ = 0;
    holder_.clear();
    std::fill(place_count_.begin(), place_count_.end(), 0);
    global_ = true;
    return plan;
  }
  pipelines_ = shape->first;
  step_ = shape->second;
  const bool moves = take_places(machines, due);
  plan.stall.wait = due - situation.now;
  if (started_) {
    plan.stall.reconfigure = global_ ? spec_.global_rendezvous : spec_.local_rendezvous;
    plan.stall.state_transfer = !survives ? situation.load : moves ? spec_.peer_transfer : Duration{};
  }
  started_ = true;
  training_since_ = situation.now + plan.stall.total();
  plan.step = StepPlan{.duration = step_.duration, .samples = step_.samples, .nodes = holder_};
  if (pipelines_ == spec_.pipelines) return plan;
  // Reviews nodes that arrived during the stall, and nodes still in creation.
  plan.review = plan.stall.total() > Duration{} ? Duration{} : machines.until_next_due(situation.now);
  return plan;
}

bool Bamboo::take_places(const Machines& machines, Duration due) {
  holder_.assign(as_index(pipelines_ * spec_.stages), -1);
  for (const int node : machines.in_order())
    if (place_count_[as_index(node)] > 0 && as_index(place_[as_index(node)]) < holder_.size())
      holder_[as_index(place_[as_index(node)])] = node;
  std::fill(place_count_.begin(), place_count_.end(), 0);
  for (const int node : holder_)
    if (node >= 0) place_count_[as_index(node)] = 1;
  std::fill(arriving_.begin(), arriving_.end(), -1);
  auto next = machines.in_order().begin();
  bool moves = !spec_.copies && pipelines_ != holding_;
  for (int place = 0; place < pipelines_ * spec_.stages; ++place) {
    int& node = holder_[as_index(place)];
    if (node < 0) {
      while (place_count_[as_index(*next)] > 0 || machines.due(*next) > due) ++next;
      node = *next;
      place_count_[as_index(node)] = 1;
    }
    place_[as_index(node)] = place;
    moves = moves || !has_state(node, state_of(place));
    arriving_[as_index(node)] = state_of(place);
  }
  return moves;
}

bool Bamboo::has_state(int node, int state) const {
  const int own = state_[as_index(node)];
  return own >= 0 && (own == state || place_after(own, spec_.stages) == state);
}

void Bamboo::know_nodes(const Machines& machines) {
  const std::size_t nodes = as_index(machines.count());
  place_count_.resize(nodes, 0);
  place_.resize(nodes, -1);
  state_.resize(nodes, -1);
  arriving_.resize(nodes, -1);
}

void Bamboo::settle(Duration now) {
  if (pipelines_ == 0 || in_stall(now)) return;
  state_ = arriving_;
  holding_ = pipelines_;
}

}  // namespace stagecraft
