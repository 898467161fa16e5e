#include "sim/lower/lower.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/lowering.hpp"

namespace stagecraft {
namespace {

Duration part_of(Duration whole, std::size_t index, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  const auto i = static_cast<std::int64_t>(index);
  return whole * (i + 1) / n - whole * i / n;  // the cuts add up to the whole
}

}  // namespace

Lowering::Lowering(const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options)
    : schedule_(schedule), prices_(prices), options_(options) {
  SC_CHECK(prices.stages.size() == static_cast<std::size_t>(schedule.stages()), "one price per stage");
  SC_CHECK(prices.ranks.size() == schedule.ranks.size(), "one price per rank");
  SC_CHECK(options.replicas >= 1, "at least one copy");
  for (auto& kinds : pass_kinds_) kinds.resize(prices.stages.size());
  for (auto& passes : segment_kinds_)
    for (auto& kinds : passes) kinds.resize(prices.stages.size());
  for (auto& steps : message_steps_) steps.resize(prices.edges.size());
  SC_CHECK(options.weights.empty() || options.weights.size() == static_cast<std::size_t>(options.replicas),
           "every copy has a weight");
  if (options.network != nullptr) {
    const std::vector<int> alike(static_cast<std::size_t>(options.replicas), 1);
    flows_.emplace(*options.network, prices.patterns, options.weights.empty() ? alike : options.weights);
  }
  has_memory_ = std::any_of(prices.stages.begin(), prices.stages.end(),
                            [](const StagePrice& stage) { return stage.memory != PassMemory{}; });
}

Program Lowering::lower() && {
  add_resources();
  for (int replica = 0; replica < options_.replicas; ++replica) {
    Arrivals arrivals = empty_arrivals();
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) add_passes(replica, rank, arrivals);
    connect(arrivals);
  }
  join_collectives();
  add_reductions();
  add_tail();
  add_speeds();
  if (flows_) flows_->finish(builder_);
  return std::move(builder_).build();
}

LabelId Lowering::label(std::string name, std::int32_t stage, std::vector<TaskPart> parts) {
  return builder_.add_label({.name = std::move(name), .stage = stage, .parts = std::move(parts)});
}

const Lowering::Kind& Lowering::pass_kind(const Action& action) {
  auto& kind = pass_kinds_[static_cast<std::size_t>(action.pass)][static_cast<std::size_t>(action.stage)];
  if (!kind) {
    const PassPrice price = price_of(action);
    kind = {.label = label(std::string(1, letter(action.pass)), action.stage, price.parts()),
            .time = price.total(),
            .flow = pass_flow(action, price.total())};
  }
  return *kind;
}

const Lowering::Steps& Lowering::message_steps(std::size_t edge, bool forward) {
  auto& steps = message_steps_[forward ? 1 : 0][edge];
  if (!steps) {
    const EdgePrice& price = prices_.edges[edge];
    steps = forward ? steps_of(price.forward, "send forward") : steps_of(price.backward, "send backward");
  }
  return *steps;
}

Traffic Lowering::traffic_of(const Action& action) const {
  const PassTraffic& stage = stage_price(action).traffic;
  Traffic traffic;
  if (action.pass == Pass::kForward) traffic.add(stage.forward);
  if (action.pass != Pass::kForward && action.pass != Pass::kWeightGradient) traffic.add(stage.recompute);
  if (action.pass == Pass::kInputGradient || action.pass == Pass::kBackward)
    traffic.add(stage.input_gradient);
  if (action.pass == Pass::kWeightGradient || action.pass == Pass::kBackward)
    traffic.add(stage.weight_gradient);
  return traffic;
}

// What the pass sends is spread evenly over it, so every part of it has the same rate.
std::optional<FlowKind> Lowering::pass_flow(const Action& action, Duration time) {
  if (!flows_) return std::nullopt;
  std::optional<FlowKind> flow = flows_->kind(traffic_of(action), price_of(action).total());
  if (flow) flow->transfer = time;
  return flow;
}

void Lowering::add_resources() {
  for (int replica = 0; replica < options_.replicas; ++replica) {
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const int simulated = replica * schedule_.shape.ranks + rank;
      const bool yields = flows_.has_value();  // to what communicates beside it
      ranks_.push_back(
          {.compute = builder_.add_resource({ResourceKind::kStream, simulated, "compute", yields}),
           .send = builder_.add_resource({ResourceKind::kConcurrent, simulated, "send"}),
           .data = builder_.add_resource({ResourceKind::kStream, simulated, "data"}),
           .last_compute = {},
           .last_data = {}});
      copy_of_.resize(ranks_.back().data.index() + 1, replica);
    }
  }
  joints_ = builder_.add_resource({ResourceKind::kConcurrent, 0, "joint"});
  joint_label_ = builder_.add_label({.name = "joint", .stage = -1, .parts = {}});
  pending_reductions_.resize(schedule_.ranks.size());
  collectives_.resize(schedule_.ranks.size());
}

Lowering::Arrivals Lowering::empty_arrivals() const {
  const std::size_t slots =
      static_cast<std::size_t>(schedule_.stages()) * static_cast<std::size_t>(schedule_.shape.micro_batches);
  Arrivals arrivals;
  arrivals.activation.resize(slots);
  arrivals.gradient.resize(slots);
  arrivals.forward.resize(slots);
  arrivals.backward.resize(slots);
  return arrivals;
}

PassPrice Lowering::price_of(const Action& action) const {
  const StagePrice& stage = prices_.stages[static_cast<std::size_t>(action.stage)];
  PassPrice price;
  switch (action.pass) {
    case Pass::kForward:
      price.add(stage.forward);
      break;
    case Pass::kRecompute:
      price.add(stage.recompute);
      break;
    case Pass::kWeightGradient:
      price.add(stage.weight_gradient);
      break;
    case Pass::kInputGradient:
      price.add(stage.recompute);
      price.add(stage.input_gradient);
      break;
    case Pass::kBackward:
      price.add(stage.recompute);
      price.add(stage.input_gradient);
      price.add(stage.weight_gradient);
      break;
  }
  return price;
}

bool Lowering::is_first_forward(int rank, const Action& action) const {
  if (action.pass != Pass::kForward) return false;
  const auto& order = schedule_.ranks[static_cast<std::size_t>(rank)];
  const auto first = std::find_if(order.begin(), order.end(), [&](const Action& a) {
    return a.pass == Pass::kForward && a.stage == action.stage;
  });
  return *first == action;
}

bool Lowering::is_last_backward(int rank, const Action& action) const {
  if (action.pass != Pass::kBackward && action.pass != Pass::kWeightGradient) return false;
  const auto& order = schedule_.ranks[static_cast<std::size_t>(rank)];
  const auto last = std::find_if(order.rbegin(), order.rend(), [&](const Action& a) {
    return (a.pass == Pass::kBackward || a.pass == Pass::kWeightGradient) && a.stage == action.stage;
  });
  return *last == action;
}

std::span<const PassPrice> Lowering::buckets_beside(int rank, const Action& action) const {
  const RankPrice& price = prices_.ranks[static_cast<std::size_t>(rank)];
  const auto chunk = static_cast<std::size_t>(chunk_of(action.stage));
  if (options_.overlap_parameters && chunk < price.parameter_buckets.size() &&
      is_first_forward(rank, action)) {
    return price.parameter_buckets[chunk];
  }
  if (options_.overlap_gradients && chunk < price.gradient_buckets.size() && is_last_backward(rank, action)) {
    return price.gradient_buckets[chunk];
  }
  return {};
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
  if (tasks.blocking) builder_.add_dependency(*std::exchange(tasks.blocking, std::nullopt), added);
  return added;
}

Lowering::Kind Lowering::kind_of(const PassPrice& price, const char* name) {
  return {.label = label(name, -1, price.parts()), .time = price.total()};
}

Lowering::Steps Lowering::steps_of(const PassPrice& price, const char* name, double load) {
  Steps steps;
  if (flows_) {
    for (const NetworkUse& use : price.network()) {
      if (use.time == Duration::zero()) continue;
      steps.push_back({.label = label(name, -1, {{static_cast<std::int32_t>(use.category), use.time}}),
                       .time = use.time,
                       .flow = flows_->kind(use.traffic, use.transfer),
                       .load = load});
    }
  }
  if (steps.empty()) {
    steps.push_back(kind_of(price, name));
    steps.back().load = load;
  }
  return steps;
}

// In the order of the stream.
Lowering::PassTasks Lowering::data_tasks(RankTasks& tasks, const Steps& steps) {
  SC_CHECK(!steps.empty(), "something to do");
  PassTasks added{};
  for (const Kind& step : steps) {
    added.last = task(tasks.data, step);
    if (&step == &steps.front()) added.first = added.last;
  }
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

Lowering::PassTasks Lowering::add_pass(int replica, int rank, const Action& action) {
  if (gathers_in(action) || reduces_in(action)) return add_cut_pass(replica, rank, action);
  const std::span<const PassPrice> buckets = buckets_beside(rank, action);
  if (!buckets.empty()) return add_segments(replica, rank, action, buckets);
  const Kind& kind = pass_kind(action);
  const Handle task = compute_task(tasks_of(replica, rank), kind, action.micro_batch);
  return {task, task};
}

Lowering::PassTasks Lowering::add_segments(int replica, int rank, const Action& action,
                                           std::span<const PassPrice> buckets) {
  std::vector<TaskPart> whole = price_of(action).parts();
  if (action.pass != Pass::kForward && options_.overlap_slowdown != 1 && !flows_) {
    for (TaskPart& part : whole) part.time = from_seconds(to_seconds(part.time) * options_.overlap_slowdown);
  }
  PassTasks pass{};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    std::vector<TaskPart> parts = whole;
    Duration duration{};
    for (TaskPart& part : parts) duration += part.time = part_of(part.time, i, buckets.size());
    const Kind kind{.label = label(std::string(1, letter(action.pass)), action.stage, std::move(parts)),
                    .time = duration,
                    .flow = pass_flow(action, duration)};
    const Handle segment = compute_task(tasks_of(replica, rank), kind, action.micro_batch);
    attach_bucket(replica, rank, action, buckets[i], segment);
    if (i == 0) pass.first = segment;
    pass.last = segment;
  }
  return pass;
}

// A forward segment waits for its parameters; a backward segment makes its gradients ready.
void Lowering::attach_bucket(int replica, int rank, const Action& action, const PassPrice& bucket,
                             Handle segment) {
  if (action.pass == Pass::kForward) {
    builder_.add_dependency(data_tasks(tasks_of(replica, rank), steps_of(bucket, "parameter gather")).last,
                            segment);
    return;
  }
  auto& pending = pending_reductions_[static_cast<std::size_t>(rank)];
  if (replica == 0) pending.push_back({&bucket, {}});
  const auto same = std::find_if(pending.begin(), pending.end(),
                                 [&](const PendingBucket& p) { return p.price == &bucket; });
  same->ready.push_back(segment);
}

Lowering::Handle Lowering::add_message(RankTasks& tasks, const Action& action, std::size_t edge,
                                       Handle after) {
  Handle last = after;
  for (const Kind& step : message_steps(edge, action.pass == Pass::kForward)) {
    if (step.time == Duration::zero()) continue;
    if (options_.blocking_messages) {
      last = compute_task(tasks, step, action.micro_batch);
      continue;
    }
    const Handle message = task(tasks.send, step, action.micro_batch);
    builder_.add_dependency(last, message);
    last = message;
  }
  return last;
}

void Lowering::add_passes(int replica, int rank, Arrivals& arrivals) {
  RankTasks& tasks = tasks_of(replica, rank);
  for (const Action& action : schedule_.ranks[static_cast<std::size_t>(rank)]) {
    const PassTasks pass = add_pass(replica, rank, action);
    if (has_memory_) attach_memory(action, pass);
    const std::size_t here = slot(action.stage, action.micro_batch);
    const auto stage = static_cast<std::size_t>(action.stage);
    switch (action.pass) {
      case Pass::kForward:
        arrivals.forward[here] = pass;
        arrivals.activation[here] =
            stage < prices_.edges.size() ? add_message(tasks, action, stage, pass.last) : pass.last;
        break;
      case Pass::kBackward:
      case Pass::kInputGradient:
        arrivals.backward[here] = pass;
        arrivals.gradient[here] = stage > 0 ? add_message(tasks, action, stage - 1, pass.last) : pass.last;
        break;
      case Pass::kWeightGradient:
      case Pass::kRecompute:
        break;  // the stream's order is all that they need
    }
  }
  flush_reductions(rank, tasks, 0);
}

// A micro-batch holds its activations from the start of its forward to the end of its backward; where that is
// split, its input gradient frees a part.
void Lowering::attach_memory(const Action& action, const PassTasks& pass) {
  const PassMemory& memory = stage_price(action).memory;
  Bytes taken{}, freed{};
  switch (action.pass) {
    case Pass::kForward:
      taken = memory.kept + memory.forward_transient;
      freed = memory.forward_transient;
      break;
    case Pass::kBackward:
      taken = memory.backward_transient;
      freed = memory.backward_transient + memory.kept;
      break;
    case Pass::kInputGradient:
      taken = memory.backward_transient;
      freed = memory.backward_transient + memory.freed_by_input_gradient;
      break;
    case Pass::kWeightGradient:
      freed = memory.kept - memory.freed_by_input_gradient;
      break;
    case Pass::kRecompute:
      break;  // what it makes is the backward's transient
  }
  if (pass.first == pass.last) {
    if (taken != Bytes(0) || freed != Bytes(0)) builder_.add_memory(pass.first, taken, -1 * freed);
    return;
  }
  if (taken != Bytes(0)) builder_.add_memory(pass.first, taken, Bytes(0));
  if (freed != Bytes(0)) builder_.add_memory(pass.last, Bytes(0), -1 * freed);
}

void Lowering::connect(const Arrivals& arrivals) {
  const std::int32_t stages = schedule_.stages();
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    for (std::int32_t mb = 0; mb < schedule_.shape.micro_batches; ++mb) {
      const std::size_t here = slot(stage, mb);
      if (stage > 0)
        builder_.add_dependency(*arrivals.activation[slot(stage - 1, mb)], arrivals.forward[here]->first);
      if (stage + 1 < stages) {
        builder_.add_dependency(*arrivals.gradient[slot(stage + 1, mb)], arrivals.backward[here]->first);
      }
    }
  }
}

Program lower(const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options) {
  return Lowering(schedule, prices, options).lower();
}

}  // namespace stagecraft
