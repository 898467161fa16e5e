#include "sim/goodput/policies/oobleck.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"

namespace stagecraft {
namespace {

bool contains(const std::vector<int>& nodes, int node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

}  // namespace

bool OobleckPolicy::trains(int node) const {
  const auto index = as_index(node);
  return running_ && index < trains_.size() && trains_[index];
}

// Once a stall is over the nodes of the layout have their layers.
void OobleckPolicy::settle(Duration now) {
  if (!running_ || settled_ || now < ready_) return;
  settled_ = true;
  holders_.clear();
  for (const NodeLayers& held :
       planner_.ask([&](OobleckPlanner& planner) { return planner.layers(layout_); }))
    holders_.push_back({.layers = held, .life = lives_[as_index(held.node)]});
}

void OobleckPolicy::lose_state(int node) {
  std::erase_if(holders_, [node](const Holder& holder) { return holder.layers.node == node; });
}

Duration OobleckPolicy::step_of(const OobleckLayout& layout, const Machines& machines) {
  return planner_.ask([&](OobleckPlanner& planner) {
    const Duration step = machines.slow().empty()
                              ? planner.step(layout).duration
                              : planner.slowed_step(layout, [&](int node) { return machines.factor(node); });
    return std::max(step, spec_.least_step);
  });
}

Response OobleckPolicy::on(const Incident& incident, const Machines& machines) {
  settle(incident.time);
  switch (incident.kind) {
    case IncidentKind::kAdd:
      leaving_.erase(incident.node);
      if (in_stall(incident.time)) look_again_ = true;
      return {.answer = running_ && !spec_.recompose ? Answer::kNothing : Answer::kAtStepEnd};
    case IncidentKind::kRemove:
      leaving_.erase(incident.node);
      return halt_if_it_trains(incident);
    case IncidentKind::kFault:
      lose_state(incident.node);
      return halt_if_it_trains(incident);
    case IncidentKind::kCorruption:
      return halt_if_it_trains(incident);
    case IncidentKind::kAnnounced:
      leaving_[incident.node] = incident.due;
      return {.answer = trains(incident.node) ? Answer::kAtStepEnd : Answer::kNothing};
    case IncidentKind::kSlow:
    case IncidentKind::kNormal:
      if (!trains(incident.node)) return {};
      if (in_stall(incident.time)) return {.answer = Answer::kAtStepEnd};
      return slowed(machines);
  }
  SC_CHECK(false, "every kind of incident has its answer");
  return {};
}

// A stall that is cut has moved nothing.
Response OobleckPolicy::halt_if_it_trains(const Incident& incident) {
  if (!trains(incident.node)) return {};
  if (in_stall(incident.time)) settled_ = true;
  return {.answer = Answer::kHalt};
}

Response OobleckPolicy::slowed(const Machines& machines) {
  const double factor = to_seconds(step_of(layout_, machines)) / to_seconds(step_);
  return {.answer = Answer::kSlowDown, .factor = factor};
}

// Nodes that can train from `by` on, and are not about to go, in the order of their numbers.
std::vector<int> OobleckPolicy::usable(const Situation& situation, Duration by) const {
  std::vector<int> out;
  for (int node = 0; node < situation.machines.count(); ++node) {
    if (!situation.machines.up(node)) continue;
    const auto leaving = leaving_.find(node);
    const bool goes = leaving != leaving_.end() && leaving->second > situation.now &&
                      leaving->second - situation.now <= 2 * step_;
    if (situation.machines.due(node) <= by && !goes) out.push_back(node);
  }
  return out;
}

std::vector<NodeLayers> OobleckPolicy::survivors(const Machines& machines) const {
  std::vector<NodeLayers> out;
  for (const Holder& holder : holders_)
    if (machines.up(holder.layers.node) && machines.life(holder.layers.node) == holder.life)
      out.push_back(holder.layers);
  return out;
}

OobleckLayout OobleckPolicy::composed_anew(std::vector<int> nodes) {
  return planner_.ask([&](OobleckPlanner& planner) { return planner.compose(std::move(nodes), layout_); });
}

OobleckPolicy::Change OobleckPolicy::change_to(OobleckLayout layout, const Situation& situation) {
  Change change{.layout = std::move(layout)};
  change.step = step_of(change.layout, situation.machines);
  const auto after = planner_.ask([&](OobleckPlanner& planner) { return planner.layers(change.layout); });
  // Copied here, not by the planner, which other repeats are waiting for.
  const OobleckSpec& spec = planner_.spec();
  const StateCopy copy = copy_state(survivors(situation.machines), after, spec.layer_state, spec.links);
  change.from_checkpoint = !copy.lost_layers.empty();
  if (!spec_.copy_included) change.copy = copy.time;
  return change;
}

// Steps saved until the next change against steps that the longer stall costs.
bool OobleckPolicy::pays(const Change& from, const Change& to, Duration more_stall) const {
  if (to.from_checkpoint || to.step >= from.step) return false;
  const double gain = 1 - to_seconds(to.step) / to_seconds(from.step);
  return gain * to_seconds(spec_.between_changes) > to_seconds(std::max(more_stall, Duration{}));
}

Plan OobleckPolicy::plan(const Situation& situation) {
  settle(situation.now);
  std::erase_if(leaving_, [&](const auto& entry) { return entry.second <= situation.now; });
  lives_.resize(as_index(situation.machines.count()));
  if (!started_ || !running_ || situation.corrupted) return restart(situation, situation.corrupted);
  const std::vector<int> here = usable(situation, situation.now);
  std::vector<int> lost;
  for (const auto& pipeline : layout_.pipelines)
    for (const int node : pipeline)
      if (!std::ranges::binary_search(here, node)) lost.push_back(node);
  if (situation.occasion == Occasion::kFailure || !lost.empty()) return after_loss(situation, lost);
  if (in_stall(situation.now)) return go_on(situation);
  return at_step_end(situation);
}

// Composes all nodes anew, from a checkpoint where their state does not suffice.
Plan OobleckPolicy::restart(const Situation& situation, bool from_checkpoint) {
  std::vector<Duration> dues = situation.machines.dues(situation.now);
  dues.erase(std::unique(dues.begin(), dues.end()), dues.end());
  for (const Duration due : dues) {
    OobleckLayout layout = composed_anew(usable(situation, due));
    if (layout.pipelines.empty()) continue;
    Change change = change_to(std::move(layout), situation);
    change.from_checkpoint = started_ && (change.from_checkpoint || from_checkpoint);
    PlanStall stall{.wait = due - situation.now};
    if (started_) {
      stall.reconfigure = spec_.reconfigure;
      stall.state_transfer = change.from_checkpoint ? situation.load : change.copy;
    }
    return take(std::move(change), stall, situation);
  }
  return stop(from_checkpoint ? Undo::kToCheckpoint : Undo::kNothing);
}

Plan OobleckPolicy::after_loss(const Situation& situation, const std::vector<int>& lost) {
  OobleckLayout layout = layout_;
  const std::vector<int> here = usable(situation, situation.now);
  layout.idle.clear();  // nodes without a place stand by
  for (const int node : here)
    if (!trains(node) || contains(lost, node)) layout.idle.push_back(node);
  const OobleckFailure after =
      planner_.ask([&](OobleckPlanner& planner) { return planner.fail(layout, lost); });
  if (!after.runs) return restart(situation, false);
  Change change = change_to(after.layout, situation);
  if (change.from_checkpoint) return restart(situation, true);
  if (spec_.recompose) {
    Change anew = change_to(composed_anew(here), situation);
    if (pays(change, anew, anew.copy - change.copy)) change = std::move(anew);
  }
  const PlanStall stall{.reconfigure = spec_.reconfigure, .state_transfer = change.copy};
  return take(std::move(change), stall, situation);
}

Plan OobleckPolicy::at_step_end(const Situation& situation) {
  look_again_ = false;
  if (!spec_.recompose) return go_on(situation);
  const Change stay{.layout = layout_, .step = step_of(layout_, situation.machines)};
  Change anew = change_to(composed_anew(usable(situation, situation.now)), situation);
  const PlanStall stall{.reconfigure = spec_.reconfigure, .state_transfer = anew.copy};
  if (!pays(stay, anew, stall.total())) return go_on(situation);
  return take(std::move(anew), stall, situation);
}

// Continues with the same pipelines, after the rest of the stall.
Plan OobleckPolicy::go_on(const Situation& situation) {
  Change same{.layout = layout_, .step = step_of(layout_, situation.machines)};
  return take(std::move(same), stall_.after(situation.now - planned_), situation);
}

Plan OobleckPolicy::take(Change change, PlanStall stall, const Situation& situation) {
  layout_ = std::move(change.layout);
  step_ = change.step;
  stall_ = stall;
  planned_ = situation.now;
  ready_ = situation.now + stall.total();
  running_ = started_ = true;
  settled_ = false;
  if (change.from_checkpoint) holders_.clear();  // their state is newer than the checkpoint
  Plan plan{.undo = change.from_checkpoint ? Undo::kToCheckpoint : Undo::kNothing, .stall = stall};
  StepPlan step{.duration = step_, .samples = spec_.samples, .nodes = {}, .slowness_priced = true};
  for (const auto& pipeline : layout_.pipelines)
    step.nodes.insert(step.nodes.end(), pipeline.begin(), pipeline.end());
  trains_.assign(lives_.size(), false);
  for (const int node : step.nodes) trains_[as_index(node)] = true;
  for (const int node : step.nodes) lives_[as_index(node)] = situation.machines.life(node);
  plan.step = std::move(step);
  plan.review = next_review(situation);
  return plan;
}

Plan OobleckPolicy::stop(Undo undo) {
  running_ = false;
  layout_ = {};
  if (undo == Undo::kToCheckpoint) holders_.clear();
  return {.undo = undo};
}

// Time at which a node in creation becomes usable, or an announced removal is due; queried from the end of
// the stall.
std::optional<Duration> OobleckPolicy::next_review(const Situation& situation) const {
  std::optional<Duration> next;
  const auto consider = [&](Duration time) { next = std::min(next.value_or(time), time); };
  if (look_again_) consider(ready_);
  const std::optional<Duration> arrival = situation.machines.until_next_due(situation.now);
  if (spec_.recompose && arrival) consider(situation.now + *arrival);
  for (const auto& [node, due] : leaving_)
    if (trains(node)) consider(due - 2 * step_);
  if (!next) return std::nullopt;
  return std::max(*next - ready_, Duration{});
}

}  // namespace stagecraft
