#include "sim/lower/lower.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/lowering.hpp"
#include "sim/lower/own_links.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/schedule/unrolled.hpp"

namespace stagecraft {
namespace {

// Are these a forward and a backward of different micro-batches? Neither then waits for the other.
bool pair_up(const Action& a, const Action& b) {
  const auto is_forward = [](const Action& action) { return action.pass == Pass::kForward; };
  const auto goes_back = [](const Action& action) { return gives_gradient(action.pass); };
  return a.micro_batch != b.micro_batch &&
         ((is_forward(a) && goes_back(b)) || (goes_back(a) && is_forward(b)));
}

}  // namespace

Lowering::Lowering(const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options)
    : schedule_(schedule), prices_(prices), options_(options), places_(schedule.places()) {
  SC_CHECK(prices.stages.size() == places_.count(), "one price per stage of each copy");
  SC_CHECK(prices.ranks.size() == schedule.ranks.size(), "one price per rank");
  SC_CHECK(options.replicas >= 1, "at least one copy");
  SC_CHECK(options.iterations >= (schedule.flush ? 1 : 2),
           "an order without an end needs several iterations");
  for (auto& kinds : pass_kinds_) kinds.resize(prices.stages.size());
  for (auto& steps : message_steps_) steps.resize(prices.edges.size());
  SC_CHECK(options.weights.empty() || options.weights.size() == static_cast<std::size_t>(options.replicas),
           "every copy has a weight");
  share_links();
  has_memory_ = std::any_of(prices.stages.begin(), prices.stages.end(),
                            [](const StagePrice& stage) { return stage.memory != PassMemory{}; });
  const bool has_buckets = std::any_of(prices.ranks.begin(), prices.ranks.end(), [&](const RankPrice& rank) {
    const auto any = [](const auto& chunks) {
      return std::any_of(chunks.begin(), chunks.end(), [](const auto& chunk) { return !chunk.empty(); });
    };
    return (options.overlap_gradients && any(rank.gradient_buckets)) ||
           (options.overlap_parameters && any(rank.parameter_buckets));
  });
  slows_ = std::ranges::any_of(prices.stages, [&](const StagePrice& stage) {
    return stage.beside.slowdown > 1 && (has_buckets || !stage.units.empty());
  });
  note_recomputed();
}

void Lowering::share_links() {
  const std::vector<int> alike(static_cast<std::size_t>(options_.replicas), 1);
  const std::vector<int>& weights = options_.weights.empty() ? alike : options_.weights;
  if (options_.network != nullptr) {
    flows_.emplace(*options_.network, prices_.patterns, weights);
  } else if (prices_.meets_at_own_links()) {
    own_links_ = own_links_of(schedule_.shape.ranks);
    flows_.emplace(own_links_, prices_.own_links, weights);
  }
}

void Lowering::note_recomputed() {
  recompute_pass_.resize(places_.count());
  for (const std::vector<Action>& order : schedule_.ranks)
    for (const Action& action : order)
      if (action.pass == Pass::kRecompute)
        recompute_pass_[places_.index_of(action.stage, schedule_.copy_of(action.micro_batch))] = true;
}

Program Lowering::lower() && {
  add_resources();
  std::vector<std::vector<Stretch>> ranks;  // [rank][stretch]
  for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
    ranks.emplace_back();
    for (const std::vector<Action>& actions : stretches(schedule_, rank, options_.iterations))
      ranks.back().push_back(stretch_of(actions));
  }
  std::size_t passes = 0;
  for (const std::vector<Stretch>& of_rank : ranks)
    for (const Stretch& stretch : of_rank)
      passes += stretch.size() * static_cast<std::size_t>(options_.replicas);
  builder_.reserve(2 * passes, 4 * passes);  // each pass with its message; the rest is negligible
  const int count = static_cast<int>(ranks.front().size());
  std::vector<Arrivals> arrivals(static_cast<std::size_t>(options_.replicas), empty_arrivals());
  for (int i = 0; i < count; ++i) {
    const int iteration = i + options_.iterations - count;
    for (int replica = 0; replica < options_.replicas; ++replica) {
      Arrivals& of_replica = arrivals[static_cast<std::size_t>(replica)];
      for (int rank = 0; rank < schedule_.shape.ranks; ++rank)
        add_passes(replica, rank, iteration,
                   ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)], of_replica);
      if (i + 1 == count) connect(of_replica);
    }
    join_collectives();
    if (iteration >= 0) end_iteration(iteration);  // before the first, an order without an end warms up
  }
  add_speeds();
  if (flows_) flows_->finish(builder_);
  return std::move(builder_).build();
}

// Marks the passes that begin and end the work of their stages, and sets the durations of fused pairs.
Lowering::Stretch Lowering::stretch_of(const std::vector<Action>& actions) const {
  Stretch stretch;
  stretch.reserve(actions.size());
  const std::size_t chunks = static_cast<std::size_t>(schedule_.shape.chunks * places_.copies());
  std::vector<bool> begun(chunks), adds(chunks);
  std::vector<std::optional<std::size_t>> last(chunks);
  for (const Action& action : actions) {
    const int copy = places_.copy_of(action.micro_batch, micro_batches());
    RankPass pass{.action = action,
                  .place = places_.index_of(action.stage, copy),
                  .chunk = static_cast<std::size_t>(places_.chunk_of(action.stage, copy))};
    if (action.pass == Pass::kForward && !begun[pass.chunk]) begun[pass.chunk] = pass.first_forward = true;
    if (makes_weight_gradients(action.pass)) {
      if (!adds[pass.chunk]) adds[pass.chunk] = pass.first_backward = true;
      last[pass.chunk] = stretch.size();
    }
    stretch.push_back(pass);
  }
  for (const auto& at : last)
    if (at) stretch[*at].last_backward = true;
  if (options_.pairs.empty()) return stretch;
  for (std::size_t i = 0; i + 1 < stretch.size(); ++i) {
    RankPass &first = stretch[i], &second = stretch[i + 1];
    const FusedPairRule &rule = options_.pairs[first.place], &of_second = options_.pairs[second.place];
    if (!first.action.fused && !(rule.neighbours && pair_up(first.action, second.action))) continue;
    const PairTimes times = fused_pair_times(price_of(first), rule, price_of(second), of_second);
    first.pair = {.lasts = times.first,
                  .partner_lasts = times.second,
                  .partner = second.action.pass,
                  .partner_place = second.place};
    second.pair = {.lasts = times.second,
                   .partner_lasts = times.first,
                   .partner = first.action.pass,
                   .partner_place = first.place};
    ++i;
  }
  return stretch;
}

void Lowering::add_resources() {
  const bool beside = replicates_beside();
  for (int replica = 0; replica < options_.replicas; ++replica) {
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const int simulated = replica * schedule_.shape.ranks + rank;
      // Compute slows down while communication overlaps it.
      const bool yields = flows_.has_value() || slows_;
      const auto add = [&](ResourceKind kind, const char* name, int stream) {
        const bool yielding = yields && stream == 0;
        std::optional<std::int32_t> copy_of;
        if (options_.replicas > 1) copy_of = 4 * rank + stream;
        return builder_.add_resource({kind, simulated, name, yielding, copy_of});
      };
      ranks_.push_back({.compute = add(ResourceKind::kStream, "compute", 0),
                        .send = add(ResourceKind::kConcurrent, "send", 1),
                        .data = add(ResourceKind::kStream, "data", 2),
                        .replicas = {},
                        .last_compute = {},
                        .last_data = {},
                        .last_replicas = {}});
      if (beside) ranks_.back().replicas = add(ResourceKind::kStream, "replicas", 3);
      copy_of_.resize(ranks_.back().replicas.value_or(ranks_.back().data).index() + 1, replica);
      ranks_.back().done.resize(static_cast<std::size_t>(schedule_.shape.chunks * places_.copies()));
    }
  }
  joints_ = builder_.add_resource({ResourceKind::kConcurrent, 0, "joint"});
  joint_label_ = label("joint", -1, {});
  if (options_.iterations > 1) iteration_label_ = label(std::string(kEndOfIteration), -1, {});
  pending_reductions_.resize(schedule_.ranks.size());
  collectives_.resize(schedule_.ranks.size());
}

Lowering::Arrivals Lowering::empty_arrivals() const {
  const std::size_t slots = slot(schedule_.stages(), 0);
  Arrivals arrivals;
  arrivals.activation.resize(slots);
  arrivals.gradient.resize(slots);
  arrivals.forward.resize(slots);
  arrivals.backward.resize(slots);
  return arrivals;
}

std::span<const PassPrice> Lowering::buckets_beside(int rank, const RankPass& pass) const {
  const RankPrice& price = prices_.ranks[static_cast<std::size_t>(rank)];
  if (options_.overlap_parameters && pass.chunk < price.parameter_buckets.size() && pass.first_forward)
    return price.parameter_buckets[pass.chunk];
  if (options_.overlap_gradients && pass.chunk < price.gradient_buckets.size() && pass.last_backward)
    return price.gradient_buckets[pass.chunk];
  return {};
}

Lowering::PassTasks Lowering::add_pass(int replica, int rank, const RankPass& pass) {
  if (gathers_in(pass) || reduces_in(pass)) return add_cut_pass(replica, rank, pass);
  const std::span<const PassPrice> buckets = buckets_beside(rank, pass);
  if (!buckets.empty()) return add_segments(replica, rank, pass, buckets);
  return compute_tasks(tasks_of(replica, rank), pass_steps(pass), pass.action.micro_batch);
}

Lowering::PassTasks Lowering::add_segments(int replica, int rank, const RankPass& pass,
                                           std::span<const PassPrice> buckets) {
  const std::vector<TaskPart> whole = parts_of(pass);
  TimeSource source = source_of(pass);
  source.kind = TimeSource::Kind::kSegment;
  source.of = static_cast<std::uint32_t>(buckets.size());
  PassTasks added{};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    source.part = static_cast<std::uint32_t>(i);
    std::vector<TaskPart> parts = whole;
    for (TaskPart& part : parts) part.time = equal_part(part.time, i, buckets.size());
    const PassTasks segment =
        compute_tasks(tasks_of(replica, rank), steps_of_pass(pass, parts, source), pass.action.micro_batch);
    attach_bucket(replica, rank, pass, buckets[i], segment);
    if (i == 0) added.first = segment.first;
    added.last = segment.last;
  }
  return added;
}

// A forward segment waits for its parameters; a backward segment makes its gradients ready.
void Lowering::attach_bucket(int replica, int rank, const RankPass& pass, const PassPrice& bucket,
                             const PassTasks& segment) {
  if (pass.action.pass == Pass::kForward) {
    RankTasks& tasks = tasks_of(replica, rank);
    const PassTasks gather =
        data_tasks(tasks, steps_of(bucket, BesideTask::kParameterGather, bucket_load(pass)));
    if (tasks.step) builder_.add_dependency(*tasks.step, gather.first);
    builder_.add_dependency(gather.last, segment.first);
    return;
  }
  // Every copy of a rank has its buckets in the same order.
  auto& pending = pending_reductions_[static_cast<std::size_t>(rank)];
  if (replica == 0) pending.push_back({&bucket, pass.chunk, bucket_load(pass), {}});
  PendingBucket& same = pending[tasks_of(replica, rank).buckets++];
  SC_CHECK(same.price == &bucket, "a bucket of each copy");
  same.ready.push_back(segment.last);
}

Lowering::Handle Lowering::add_message(RankTasks& tasks, const RankPass& pass, Handle after) {
  const Action& action = pass.action;
  const bool forward = action.pass == Pass::kForward;
  const std::size_t edge = forward ? pass.place : pass.place - 1;
  const int copy = static_cast<int>(pass.place) / places_.stages();
  constexpr int kNic = -1;
  const int way = prices_.edges[edge].between_nodes && options_.network == nullptr
                      ? kNic
                      : places_.rank_of(action.stage + (forward ? 1 : -1), copy);
  const auto before = tasks.sent.find(way);
  Handle last = after;
  for (const Kind& step : message_steps(edge, forward)) {
    if (step.time == Duration::zero()) continue;
    if (options_.blocking_messages) {
      last = compute_task(tasks, step, action.micro_batch);
      continue;
    }
    const Handle message = task(tasks.send, step, action.micro_batch);
    builder_.add_dependency(last, message);
    if (last == after && before != tasks.sent.end()) builder_.add_dependency(before->second, message);
    last = message;
  }
  if (options_.queued_messages && last != after) tasks.sent.insert_or_assign(way, last);
  return last;
}

// Sends the output of a pass to the rank that needs it, and records when it arrives.
void Lowering::send(RankTasks& tasks, const RankPass& pass, const PassTasks& added, Arrivals& arrivals) {
  const Action& action = pass.action;
  const std::size_t here = slot(action.stage, action.micro_batch);
  switch (action.pass) {
    case Pass::kForward:
      arrivals.forward[here] = added;
      arrivals.activation[here] =
          action.stage + 1 < schedule_.stages() ? add_message(tasks, pass, added.last) : added.last;
      break;
    case Pass::kBackward:
    case Pass::kInputGradient:
      arrivals.backward[here] = added;
      arrivals.gradient[here] = action.stage > 0 ? add_message(tasks, pass, added.last) : added.last;
      break;
    case Pass::kWeightGradient:
    case Pass::kRecompute:
      break;  // the order of the stream is their only dependency
  }
}

void Lowering::add_rollback(RankTasks& tasks) {
  PassPrice price;
  price.add(Category::kOther, options_.rollback, Provenance::kAssumed);
  (void)compute_task(tasks, kind_of(price, BesideTask::kRollback), -1);
}

void Lowering::add_passes(int replica, int rank, int iteration, const Stretch& stretch, Arrivals& arrivals) {
  RankTasks& tasks = tasks_of(replica, rank);
  const int next = (iteration + 1) * schedule_.shape.micro_batches;  // the first of the next iteration
  tasks.backwards.clear();
  tasks.last_backward.assign(tasks.done.size(), std::nullopt);
  if (iteration > 0 && options_.rollback > Duration::zero()) add_rollback(tasks);
  for (std::size_t i = 0; i < stretch.size();) {
    const std::size_t count = stretch[i].action.fused && i + 1 < stretch.size() ? 2 : 1;
    const std::span<const RankPass> together(&stretch[i], count);
    const Action& action = stretch[i].action;
    if (options_.step == StepRule::kDelayed && action.pass == Pass::kForward && action.micro_batch >= next)
      step_delayed(replica, rank);
    PassTasks added = add_pass(replica, rank, together.front());
    if (count == 2) added.last = add_pass(replica, rank, together.back()).last;
    if (has_memory_) attach_memory(together, added);
    for (const RankPass& pass : together) {
      if (pass.action.pass == Pass::kBackward) tasks.backwards.push_back(added.last);
      if (pass.last_backward) {
        tasks.done[pass.chunk] = added.last;
        if (pass.action.pass == Pass::kBackward) tasks.last_backward[pass.chunk] = tasks.backwards.size() - 1;
      }
      send(tasks, pass, added, arrivals);
    }
    i += count;
  }
  flush_reductions(rank, tasks, 0);
  join_replicas(tasks);
}

// Passes of a fused pair begin and end together. Under ZeRO 2 and 3 the unsharded gradients of a stage are
// live from the start of its first backward to the end of its last.
void Lowering::attach_memory(std::span<const RankPass> together, const PassTasks& tasks) {
  Bytes taken{}, freed{};
  for (const RankPass& pass : together) {
    const PassMemory& memory = stage_price(pass).memory;
    if (pass.first_backward) taken += memory.gradients;
    if (pass.last_backward) freed += memory.gradients;
    const PassHold hold = hold_of(memory, pass.action.pass);
    taken += hold.taken + hold.transient;
    freed += hold.transient + hold.freed;
  }
  if (tasks.first == tasks.last) {
    if (taken != Bytes(0) || freed != Bytes(0)) builder_.add_memory(tasks.first, taken, -1 * freed);
    return;
  }
  if (taken != Bytes(0)) builder_.add_memory(tasks.first, taken, Bytes(0));
  if (freed != Bytes(0)) builder_.add_memory(tasks.last, Bytes(0), -1 * freed);
}

void Lowering::connect(const Arrivals& arrivals) {
  const std::int32_t stages = schedule_.stages();
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    for (std::int32_t mb = 0; mb < micro_batches(); ++mb) {
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
