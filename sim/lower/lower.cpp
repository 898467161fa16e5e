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
  for (auto& kinds : message_kinds_) kinds.resize(prices.edges.size());
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
  return std::move(builder_).build();
}

LabelId Lowering::label(std::string name, std::int32_t stage, std::vector<TaskPart> parts) {
  return builder_.add_label({.name = std::move(name), .stage = stage, .parts = std::move(parts)});
}

const Lowering::Kind& Lowering::pass_kind(const Action& action) {
  auto& kind = pass_kinds_[static_cast<std::size_t>(action.pass)][static_cast<std::size_t>(action.stage)];
  if (!kind) {
    const PassPrice price = price_of(action);
    kind = {label(std::string(1, letter(action.pass)), action.stage, price.parts()), price.total()};
  }
  return *kind;
}

const Lowering::Kind& Lowering::message_kind(std::size_t edge, bool forward) {
  auto& kind = message_kinds_[forward ? 1 : 0][edge];
  if (!kind) {
    const PassPrice& price = forward ? prices_.edges[edge].forward : prices_.edges[edge].backward;
    kind = {label(forward ? "send forward" : "send backward", -1, price.parts()), price.total()};
  }
  return *kind;
}

void Lowering::add_resources() {
  for (int replica = 0; replica < options_.replicas; ++replica) {
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const int simulated = replica * schedule_.shape.ranks + rank;
      ranks_.push_back({.compute = builder_.add_resource({ResourceKind::kStream, simulated, "compute"}),
                        .send = builder_.add_resource({ResourceKind::kConcurrent, simulated, "send"}),
                        .data = builder_.add_resource({ResourceKind::kStream, simulated, "data"}),
                        .last_compute = {},
                        .last_data = {}});
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

Lowering::Handle Lowering::compute_task(RankTasks& tasks, Duration duration, LabelId label,
                                        std::int32_t micro_batch) {
  const Handle task = builder_.add_task(tasks.compute, duration, label, micro_batch);
  tasks.last_compute = task;
  if (tasks.blocking) builder_.add_dependency(*std::exchange(tasks.blocking, std::nullopt), task);
  return task;
}

Lowering::Kind Lowering::kind_of(const PassPrice& price, const char* name) {
  return {.label = label(name, -1, price.parts()), .time = price.total()};
}

Lowering::Handle Lowering::data_task(RankTasks& tasks, const Kind& kind) {
  const Handle task = builder_.add_task(tasks.data, kind.time, kind.label);
  tasks.last_data = task;
  return task;
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
  const Handle task = compute_task(tasks_of(replica, rank), kind.time, kind.label, action.micro_batch);
  return {task, task};
}

Lowering::PassTasks Lowering::add_segments(int replica, int rank, const Action& action,
                                           std::span<const PassPrice> buckets) {
  std::vector<TaskPart> whole = price_of(action).parts();
  if (action.pass != Pass::kForward && options_.overlap_slowdown != 1) {
    for (TaskPart& part : whole) part.time = from_seconds(to_seconds(part.time) * options_.overlap_slowdown);
  }
  PassTasks pass{};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    std::vector<TaskPart> parts = whole;
    Duration duration{};
    for (TaskPart& part : parts) duration += part.time = part_of(part.time, i, buckets.size());
    const LabelId name = label(std::string(1, letter(action.pass)), action.stage, std::move(parts));
    const Handle segment = compute_task(tasks_of(replica, rank), duration, name, action.micro_batch);
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
    builder_.add_dependency(data_task(tasks_of(replica, rank), kind_of(bucket, "parameter gather")), segment);
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
  const Kind& kind = message_kind(edge, action.pass == Pass::kForward);
  if (kind.time == Duration::zero()) return after;
  if (options_.blocking_messages) return compute_task(tasks, kind.time, kind.label, action.micro_batch);
  const Handle message = builder_.add_task(tasks.send, kind.time, kind.label, action.micro_batch);
  builder_.add_dependency(after, message);
  return message;
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
