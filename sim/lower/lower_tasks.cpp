#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/lower/lowering.hpp"
#include "sim/lower/task_names.hpp"

namespace stagecraft {
namespace {

Duration total_of(const std::vector<TaskPart>& parts) {
  Duration sum{};
  for (const TaskPart& part : parts) sum += part.time;
  return sum;
}

TaskPart part_of_category(const std::vector<TaskPart>& parts, Category category) {
  const auto number = static_cast<std::int32_t>(category);
  const auto at = std::ranges::find(parts, number, &TaskPart::category);
  return at != parts.end() ? *at : TaskPart{.category = number};
}

// Takes so much of a category away, or what there is.
TaskPart taken_of(std::vector<TaskPart>& parts, Category category, Duration most) {
  TaskPart part = part_of_category(parts, category);
  const auto at = std::ranges::find(parts, part);
  part.time = std::min(part.time, most);
  if (at == parts.end()) return part;
  at->time -= part.time;
  if (at->time == Duration::zero()) parts.erase(at);
  return part;
}

}  // namespace

LabelId Lowering::label(std::string name, std::int32_t stage, std::vector<TaskPart> parts,
                        TimeSource source) {
  if (trace_ != nullptr) trace_->sources.push_back(source);
  return builder_.add_label({.name = std::move(name), .stage = stage, .parts = std::move(parts)});
}

TimeSource Lowering::source_of(const RankPass& pass) const {
  return {.kind = TimeSource::Kind::kPass,
          .pass = pass.action.pass,
          .recomputes = recomputes_in(pass),
          .number = static_cast<std::uint32_t>(pass.place)};
}

std::vector<TaskPart> Lowering::parts_of(const RankPass& pass) const {
  const PassPrice price = price_of(pass);
  return pass.pair ? parts_in_pair(price, pass.pair->lasts, options_.pairs[pass.place]) : price.parts();
}

const Lowering::Steps& Lowering::pass_steps(const RankPass& pass) {
  const auto made = [&] { return steps_of_pass(pass, parts_of(pass), source_of(pass)); };
  if (pass.pair) {
    const FusedKey key{pass.action.pass, pass.place, *pass.pair};
    const auto known = fused_kinds_.find(key);
    return known != fused_kinds_.end() ? known->second : fused_kinds_.emplace(key, made()).first->second;
  }
  auto& steps = pass_kinds_[static_cast<std::size_t>(pass.action.pass)][pass.place];
  if (!steps) steps = made();
  return *steps;
}

const Lowering::Steps& Lowering::message_steps(std::size_t edge, bool forward) {
  auto& steps = message_steps_[forward ? 1 : 0][edge];
  if (!steps) {
    const EdgePrice& price = prices_.edges[edge];
    steps = forward ? steps_of(price.forward, BesideTask::kSendForward)
                    : steps_of(price.backward, BesideTask::kSendBackward);
  }
  return *steps;
}

Lowering::Kind Lowering::pass_step(const RankPass& pass, std::vector<TaskPart> parts, TimeSource source) {
  const Duration time = total_of(parts);
  return {
      .label = label(std::string(1, letter(pass.action.pass)), pass.action.stage, std::move(parts), source),
      .time = time};
}

// The exposed collectives of one kind of group, as one flow. `part`: this segment's share of the wait for them,
// in `moving` of which bytes move. `idle`: what it waits for its host beside them, over which they are spread.
Lowering::Kind Lowering::wait_step(const RankPass& pass, const Exchanges& all, TaskPart part, double moving,
                                   TaskPart idle) {
  std::vector<TaskPart> parts = {part};
  if (idle.time > Duration::zero()) parts.push_back(idle);
  Kind wait = pass_step(pass, std::move(parts), {});
  const Duration transfer = std::min(part.time, from_seconds(moving * to_seconds(part.time)));
  if (transfer == Duration::zero()) return wait;
  wait.flow = flows_->kind(all.traffic, all.transfer, all.launches);
  if (!wait.flow) return wait;
  wait.flow->transfer = transfer + idle.time;
  wait.flow->rate = (to_seconds(transfer) / to_seconds(wait.flow->transfer)) * wait.flow->rate;
  return wait;
}

Lowering::PassTraffics Lowering::traffics_of(const RankPass& pass) const {
  const PassExchanges exchanges =
      exchanges_of(stage_price(pass).traffic, pass.action.pass, recomputes_in(pass));
  const std::vector<TaskPart> whole = parts_of(pass);
  const Duration idle = part_of_category(whole, Category::kOther).time;
  Duration transfers{};
  for (const Exchanges& all : exchanges) transfers += all.transfer;
  PassTraffics traffics{.computes = total_of(whole)};
  for (std::size_t i = 0; i < kInPass.size(); ++i) {
    const Exchanges& all = exchanges[i];
    if (all.traffic.empty()) continue;
    const Duration waited = part_of_category(whole, kInPass[i]).time;
    const double exposed = std::min(1.0, to_seconds(waited) / to_seconds(all.time));
    const double moves = exposed * to_seconds(all.transfer);
    const double beside = moves / to_seconds(transfers);
    traffics.hidden.add(all.traffic, 1 - exposed);
    traffics.computes -= waited + scaled(idle, beside);
    traffics.exposed.push_back(
        {.category = kInPass[i], .all = all, .waited = waited, .moves = moves, .beside = beside});
  }
  return traffics;
}

std::optional<FlowKind> Lowering::hidden_flow(const RankPass& pass, const PassTraffics& traffics) {
  if (!pass.pair) return flows_->kind(traffics.hidden, traffics.computes);
  RankPass partner = pass;
  partner.action.pass = pass.pair->partner;
  partner.place = pass.pair->partner_place;
  std::swap(partner.pair->lasts, partner.pair->partner_lasts);
  const PassTraffics of_partner = traffics_of(partner);
  Traffic hidden = traffics.hidden;
  hidden.add(of_partner.hidden);
  return flows_->kind(hidden, traffics.computes + of_partner.computes);
}

// Hidden traffic is spread evenly over the compute; in a fused pair that of either pass over the compute of
// both, which hides it. The exposed collectives follow it, one task per kind of group, each on its own links.
// What the pass waits for its host, or for copies, is spread over all traffic by its time: a pass whose traffic
// takes longer waits less for its host.
Lowering::Steps Lowering::steps_of_pass(const RankPass& pass, const std::vector<TaskPart>& parts,
                                        TimeSource source) {
  if (!flows_) return {pass_step(pass, parts, source)};
  const PassTraffics traffics = traffics_of(pass);
  std::vector<TaskPart> own = parts;
  Steps waits;
  for (const ExposedExchanges& exchanges : traffics.exposed) {
    const TaskPart here = part_of_category(parts, exchanges.category);
    if (here.time == Duration::zero()) continue;
    std::erase(own, here);
    const Duration idle_here = scaled(part_of_category(parts, Category::kOther).time, exchanges.beside);
    waits.push_back(wait_step(pass, exchanges.all, here, exchanges.moves / to_seconds(exchanges.waited),
                              taken_of(own, Category::kOther, idle_here)));
  }
  Steps steps;
  if (total_of(own) > Duration::zero() || waits.empty()) {
    steps.push_back(pass_step(pass, std::move(own), {}));
    steps.back().flow = hidden_flow(pass, traffics);
    if (steps.back().flow) steps.back().flow->transfer = steps.back().time;
  }
  steps.insert(steps.end(), waits.begin(), waits.end());
  return steps;
}

Lowering::Handle Lowering::task(ResourceId resource, const Kind& kind, std::int32_t micro_batch) {
  const Handle task = builder_.add_task(resource, kind.time, kind.label, micro_batch);
  if (kind.flow && kind.flow->transfer > Duration::zero())
    flows_->add(task, *kind.flow, copy_of_.at(resource.index()));
  if (kind.load > 0) builder_.add_load(task, kind.load);
  return task;
}

Lowering::Handle Lowering::compute_task(RankTasks& tasks, const Kind& kind, std::int32_t micro_batch) {
  const Handle added = task(tasks.compute, kind, micro_batch);
  tasks.last_compute = added;
  for (const Handle before : std::exchange(tasks.blocking, {})) builder_.add_dependency(before, added);
  return added;
}

Lowering::PassTasks Lowering::compute_tasks(RankTasks& tasks, const Steps& steps, std::int32_t micro_batch) {
  SC_CHECK(!steps.empty(), "something to do");
  PassTasks added{};
  for (const Kind& step : steps) {
    added.last = compute_task(tasks, step, micro_batch);
    if (&step == &steps.front()) added.first = added.last;
  }
  return added;
}

Lowering::Kind Lowering::kind_of(const PassPrice& price, BesideTask does) {
  TimeSource source;
  if (trace_ != nullptr) source = {.kind = TimeSource::Kind::kPrice, .number = trace_->numbers.at(&price)};
  return {.label = label(std::string(name_of(does)), -1, price.parts(), source), .time = price.total()};
}

Lowering::Steps Lowering::steps_of(const PassPrice& price, BesideTask does, double load) {
  Steps steps;
  if (flows_) {
    for (const NetworkUse& use : price.network()) {
      if (use.time == Duration::zero()) continue;
      steps.push_back({.label = label(std::string(name_of(does)), -1,
                                      {{static_cast<std::int32_t>(use.category), use.time}}),
                       .time = use.time,
                       .flow = flows_->kind(use.traffic, use.transfer),
                       .load = load});
    }
  }
  if (steps.empty()) {
    steps.push_back(kind_of(price, does));
    steps.back().load = load;
  }
  return steps;
}

// Adds one task per step; the order of the stream serialises them.
Lowering::PassTasks Lowering::tasks_on(ResourceId stream, const Steps& steps) {
  SC_CHECK(!steps.empty(), "something to do");
  PassTasks added{};
  for (const Kind& step : steps) {
    added.last = task(stream, step);
    if (&step == &steps.front()) added.first = added.last;
  }
  return added;
}

Lowering::PassTasks Lowering::data_tasks(RankTasks& tasks, const Steps& steps) {
  const PassTasks added = tasks_on(tasks.data, steps);
  tasks.last_data = added.last;
  return added;
}

Lowering::Handle Lowering::join(std::span<const Handle> before) {
  SC_CHECK(!before.empty(), "a joint of something");
  if (before.size() == 1) return before.front();
  const Handle joint = builder_.add_task(joints_, Duration::zero(), joint_label_);
  for (const Handle handle : before) builder_.add_dependency(handle, joint);
  return joint;
}

}  // namespace stagecraft
