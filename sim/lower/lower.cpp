#include "sim/lower/lower.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "base/check.hpp"

namespace stagecraft {
namespace {

using Handle = ProgramBuilder::Handle;

// A pass may be cut into segments, one per bucket that starts when the segment is done.
struct PassTasks {
  Handle first, last;
};

// The tasks of one copy of one pipeline rank.
struct RankTasks {
  ResourceId compute, send, data;
  std::optional<Handle> last_compute, last_data;
};

// What other ranks wait for: when the output of a forward and the input gradient of a backward have arrived.
struct Arrivals {
  std::vector<std::optional<Handle>> activation,
      gradient;  // [stage * m + micro-batch], by the producing stage
  std::vector<std::optional<PassTasks>> forward, backward;  // the passes themselves
};

Duration part_of(Duration whole, std::size_t index, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  const auto i = static_cast<std::int64_t>(index);
  return whole * (i + 1) / n - whole * i / n;  // the cuts add up to the whole
}

class Lowering {
 public:
  Lowering(const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options)
      : schedule_(schedule), prices_(prices), options_(options) {
    SC_CHECK(prices.stages.size() == static_cast<std::size_t>(schedule.stages()), "one price per stage");
    SC_CHECK(prices.ranks.size() == schedule.ranks.size(), "one price per rank");
    SC_CHECK(options.replicas >= 1, "at least one copy");
    for (auto& kinds : pass_kinds_) kinds.resize(prices.stages.size());
    for (auto& kinds : message_kinds_) kinds.resize(prices.edges.size());
  }

  Program lower() && {
    add_resources();
    for (int replica = 0; replica < options_.replicas; ++replica) {
      Arrivals arrivals = empty_arrivals();
      for (int rank = 0; rank < schedule_.shape.ranks; ++rank) add_passes(replica, rank, arrivals);
      connect(arrivals);
    }
    add_reductions();
    add_tail();
    return std::move(builder_).build();
  }

 private:
  void add_resources();
  Arrivals empty_arrivals() const;
  void add_passes(int replica, int rank, Arrivals& arrivals);
  PassTasks add_pass(int replica, int rank, const Action& action);
  PassTasks add_segments(int replica, int rank, const Action& action, std::span<const PassPrice> buckets);
  void attach_bucket(int replica, int rank, const Action& action, const PassPrice& bucket, Handle segment);
  Handle add_message(RankTasks& tasks, const Action& action, std::size_t edge, Handle after);
  void connect(const Arrivals& arrivals);
  void add_reductions();
  void add_tail();
  void add_tied_embedding(std::vector<Handle>& ends);

  std::span<const PassPrice> buckets_beside(int rank, const Action& action) const;
  PassPrice price_of(const Action& action) const;
  std::int32_t chunk_of(std::int32_t stage) const { return stage / schedule_.shape.ranks; }
  bool is_first_forward(int rank, const Action& action) const;
  bool is_last_backward(int rank, const Action& action) const;

  RankTasks& tasks_of(int replica, int rank) {
    return ranks_[static_cast<std::size_t>(replica * schedule_.shape.ranks + rank)];
  }
  std::size_t slot(std::int32_t stage, std::int32_t micro_batch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(schedule_.shape.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }
  struct Kind {
    LabelId label;
    Duration time{};
  };
  const Kind& pass_kind(const Action& action);
  const Kind& message_kind(std::size_t edge, bool forward);
  LabelId label(std::string name, std::int32_t stage, std::vector<TaskPart> parts);
  Handle compute_task(RankTasks& tasks, Duration duration, LabelId label, std::int32_t micro_batch);
  Handle data_task(RankTasks& tasks, const PassPrice& price, const char* name);
  // Joins `before` into one point in time; itself takes none.
  Handle join(std::span<const Handle> before);

  const Schedule& schedule_;
  const IterationPrices& prices_;
  const LowerOptions& options_;
  ProgramBuilder builder_;
  std::vector<RankTasks> ranks_;  // [replica * p + rank]
  ResourceId joints_;
  LabelId joint_label_;
  // Where each bucket's data becomes ready: [rank][bucket in program order] -> one handle per replica.
  struct PendingBucket {
    const PassPrice* price;
    std::vector<Handle> ready;
  };
  std::vector<std::vector<PendingBucket>> pending_reductions_;
  // Passes of one stage and messages of one edge are alike for every micro-batch: priced and labelled once.
  std::array<std::vector<std::optional<Kind>>, 5> pass_kinds_;     // [pass][stage]
  std::array<std::vector<std::optional<Kind>>, 2> message_kinds_;  // [forward][edge]
};

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
                        .send = builder_.add_resource({ResourceKind::kLink, simulated, "send"}),
                        .data = builder_.add_resource({ResourceKind::kStream, simulated, "data"}),
                        .last_compute = {},
                        .last_data = {}});
    }
  }
  joints_ = builder_.add_resource({ResourceKind::kLink, 0, "joint"});
  joint_label_ = builder_.add_label({.name = "joint", .stage = -1, .parts = {}});
  pending_reductions_.resize(schedule_.ranks.size());
}

Arrivals Lowering::empty_arrivals() const {
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

Handle Lowering::compute_task(RankTasks& tasks, Duration duration, LabelId label, std::int32_t micro_batch) {
  const Handle task = builder_.add_task(tasks.compute, duration, label, micro_batch);
  tasks.last_compute = task;
  return task;
}

Handle Lowering::data_task(RankTasks& tasks, const PassPrice& price, const char* name) {
  const Handle task = builder_.add_task(tasks.data, price.total(), label(name, -1, price.parts()));
  tasks.last_data = task;
  return task;
}

Handle Lowering::join(std::span<const Handle> before) {
  SC_CHECK(!before.empty(), "a joint of something");
  if (before.size() == 1) return before.front();
  const Handle joint = builder_.add_task(joints_, Duration::zero(), joint_label_);
  for (const Handle handle : before) builder_.add_dependency(handle, joint);
  return joint;
}

PassTasks Lowering::add_pass(int replica, int rank, const Action& action) {
  const std::span<const PassPrice> buckets = buckets_beside(rank, action);
  if (!buckets.empty()) return add_segments(replica, rank, action, buckets);
  const Kind& kind = pass_kind(action);
  const Handle task = compute_task(tasks_of(replica, rank), kind.time, kind.label, action.micro_batch);
  return {task, task};
}

PassTasks Lowering::add_segments(int replica, int rank, const Action& action,
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
    builder_.add_dependency(data_task(tasks_of(replica, rank), bucket, "parameter gather"), segment);
    return;
  }
  auto& pending = pending_reductions_[static_cast<std::size_t>(rank)];
  if (replica == 0) pending.push_back({&bucket, {}});
  const auto same = std::find_if(pending.begin(), pending.end(),
                                 [&](const PendingBucket& p) { return p.price == &bucket; });
  same->ready.push_back(segment);
}

Handle Lowering::add_message(RankTasks& tasks, const Action& action, std::size_t edge, Handle after) {
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

void Lowering::add_reductions() {
  for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
    auto& pending = pending_reductions_[static_cast<std::size_t>(rank)];
    if (!options_.overlap_gradients) {
      std::vector<Handle> ready;
      for (int r = 0; r < options_.replicas; ++r) ready.push_back(*tasks_of(r, rank).last_compute);
      for (const auto& chunk : prices_.ranks[static_cast<std::size_t>(rank)].gradient_buckets) {
        for (const PassPrice& bucket : chunk) pending.push_back({&bucket, ready});
      }
    }
    for (const PendingBucket& bucket : pending) {
      const Handle start = join(bucket.ready);
      for (int r = 0; r < options_.replicas; ++r) {
        builder_.add_dependency(start, data_task(tasks_of(r, rank), *bucket.price, "gradient reduction"));
      }
    }
  }
}

// First and last rank sum the gradients of the word embedding that both hold; `ends` is what each rank last
// did.
void Lowering::add_tied_embedding(std::vector<Handle>& ends) {
  const PassPrice& price = prices_.ranks.front().tied_embedding;
  if (price.total() == Duration::zero()) return;
  const int last = schedule_.shape.ranks - 1;
  std::vector<Handle> both;
  for (int r = 0; r < options_.replicas; ++r) {
    for (const int rank : {0, last}) {
      const RankTasks& tasks = tasks_of(r, rank);
      both.push_back(*tasks.last_compute);
      if (tasks.last_data) both.push_back(*tasks.last_data);
    }
  }
  const Handle start = join(both);
  for (int r = 0; r < options_.replicas; ++r) {
    for (const int rank : {0, last}) {
      const Handle sum = data_task(tasks_of(r, rank), price, "embedding all-reduce");
      builder_.add_dependency(start, sum);
      ends.push_back(sum);
    }
  }
}

void Lowering::add_tail() {
  std::vector<Handle> ends;
  add_tied_embedding(ends);
  for (const RankTasks& tasks : ranks_) {
    ends.push_back(*tasks.last_compute);
    if (tasks.last_data) ends.push_back(*tasks.last_data);
  }
  std::optional<Handle> barrier;  // the gradient norm needs every rank
  for (int r = 0; r < options_.replicas; ++r) {
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const RankPrice& price = prices_.ranks[static_cast<std::size_t>(rank)];
      RankTasks& tasks = tasks_of(r, rank);
      const std::pair<const char*, const PassPrice*> steps[] = {
          {"gradient norm", &price.gradient_norm}, {"optimizer", &price.optimizer}, {"host", &prices_.host}};
      for (const auto& [name, step] : steps) {
        if (step->total() == Duration::zero()) continue;
        if (!barrier) barrier = join(ends);
        const Handle task = compute_task(tasks, step->total(), label(name, -1, step->parts()), -1);
        builder_.add_dependency(*barrier, task);
      }
      if (options_.overlap_parameters) continue;
      for (const auto& chunk : price.parameter_buckets) {
        for (const PassPrice& bucket : chunk) {
          const Handle gather = data_task(tasks, bucket, "parameter gather");
          builder_.add_dependency(*tasks.last_compute, gather);
        }
      }
    }
  }
}

}  // namespace

Program lower(const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options) {
  return Lowering(schedule, prices, options).lower();
}

}  // namespace stagecraft
