#include "sim/goodput/policies/recycle.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/never.hpp"

namespace stagecraft {

Recycle::Recycle(RecycleSpec spec) : spec_(std::move(spec)) {
  SC_CHECK(stages() >= 1 && spec_.shape.pipelines >= 1 && spec_.samples >= 1,
           "pipelines, stages and a batch");
  holder_.assign(as_index(places()), -1);
}

Response Recycle::on(const Incident& incident, const Machines& machines) {
  know_nodes(machines);
  switch (incident.kind) {
    case IncidentKind::kRemove:
    case IncidentKind::kFault: {
      if (place_[as_index(incident.node)] < 0) return {};
      const Response response = halt(incident.time);
      vacate(incident.node);
      return response;
    }
    case IncidentKind::kCorruption:
      return place_[as_index(incident.node)] < 0 ? Response{} : halt(incident.time);
    case IncidentKind::kAdd: {
      // During a stall the review after it will see the node.
      const bool wanted = !running_ || (vacant() && !in_stall(incident.time));
      return {.answer = wanted ? Answer::kAtStepEnd : Answer::kNothing};
    }
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
    case IncidentKind::kAnnounced:
      return {};
  }
  return {};
}

// No node receives a state from now until the next plan.
Response Recycle::halt(Duration now) {
  if (!in_stall(now)) settle();
  training_since_ = kNever;
  return {.answer = Answer::kHalt};
}

Plan Recycle::plan(const Situation& situation) {
  know_nodes(situation.machines);
  if (running_ && !in_stall(situation.now)) settle();
  if (!started_ || situation.corrupted || !state_survives()) return restart(situation);
  Plan plan;
  const bool joined = fill_vacancies(situation) > 0;
  if (joined || situation.occasion == Occasion::kFailure || in_stall(situation.now))
    plan.stall.reconfigure = spec_.reconfigure;
  if (joined) plan.stall.state_transfer = spec_.peer_transfer;
  return resume(std::move(plan), situation);
}

Plan Recycle::restart(const Situation& situation) {
  Plan plan{.undo = started_ ? Undo::kToCheckpoint : Undo::kNothing};
  const std::vector<Duration> dues = situation.machines.dues(situation.now);
  std::fill(holder_.begin(), holder_.end(), -1);
  std::fill(place_.begin(), place_.end(), -1);
  running_ = static_cast<int>(dues.size()) >= stages();
  if (!running_) return plan;
  // Starts once every stage can have a worker, with the nodes present by then.
  const Duration due = dues[as_index(stages() - 1)];
  place_all(situation, due);
  plan.stall.wait = due - situation.now;
  if (started_) {
    plan.stall.reconfigure = spec_.restart;
    plan.stall.state_transfer = situation.load;
  }
  started_ = true;
  return resume(std::move(plan), situation);
}

Plan Recycle::resume(Plan plan, const Situation& situation) {
  const Duration stall = plan.stall.total();
  training_since_ = situation.now + stall;
  StepPlan step{.duration = {}, .samples = spec_.samples, .nodes = {}};
  for (const int node : holder_)
    if (node >= 0) step.nodes.push_back(node);
  step.duration = step_time(static_cast<int>(step.nodes.size()));
  plan.step = std::move(step);
  // Reviews nodes that arrived during the stall, and nodes still in creation, of which none has a place.
  if (vacant())
    plan.review = stall > Duration{} ? Duration{} : situation.machines.until_next_due(situation.now);
  return plan;
}

Duration Recycle::step_time(int workers) const {
  if (!spec_.by_workers) return recycle_iteration(spec_.shape, dead(), spec_.form);
  const std::optional<ShapedStep> step = spec_.by_workers(workers);
  SC_CHECK(step.has_value(), "a table has a step for as many workers as a pipeline has stages");
  return step->duration;
}

std::vector<int> Recycle::dead() const {
  std::vector<int> dead(as_index(stages()), 0);
  for (int place = 0; place < places(); ++place)
    if (holder_[as_index(place)] < 0) ++dead[as_index(place % stages())];
  return dead;
}

bool Recycle::vacant() const {
  return std::find(holder_.begin(), holder_.end(), -1) != holder_.end();
}

bool Recycle::state_survives() const {
  std::vector<char> alive(as_index(stages()), 0);
  for (std::size_t node = 0; node < place_.size(); ++node)
    if (place_[node] >= 0 && has_state_[node] != 0) alive[as_index(place_[node] % stages())] = 1;
  return std::find(alive.begin(), alive.end(), 0) == alive.end();
}

int Recycle::fill_vacancies(const Situation& situation) {
  int joined = 0;
  std::vector<int> dead = this->dead();
  for (const int node : situation.machines.in_order()) {
    if (place_[as_index(node)] >= 0 || situation.machines.due(node) > situation.now) continue;
    const auto worst = std::max_element(dead.begin(), dead.end());
    if (*worst == 0) break;
    int vacancy = static_cast<int>(worst - dead.begin());
    while (holder_[as_index(vacancy)] >= 0) vacancy += stages();
    place(node, vacancy);
    --*worst;
    ++joined;
  }
  return joined;
}

void Recycle::place_all(const Situation& situation, Duration due) {
  int next = 0;
  for (const int node : situation.machines.in_order()) {
    if (next == places()) break;
    if (situation.machines.due(node) <= due) place(node, next++);
  }
}

void Recycle::place(int node, int place) {
  holder_[as_index(place)] = node;
  place_[as_index(node)] = place;
  has_state_[as_index(node)] = 0;
}

void Recycle::vacate(int node) {
  holder_[as_index(place_[as_index(node)])] = -1;
  place_[as_index(node)] = -1;
}

void Recycle::settle() {
  std::fill(has_state_.begin(), has_state_.end(), char{1});
}

void Recycle::know_nodes(const Machines& machines) {
  place_.resize(as_index(machines.count()), -1);
  has_state_.resize(as_index(machines.count()), 0);
}

}  // namespace stagecraft
