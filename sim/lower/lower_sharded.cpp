#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/lowering.hpp"
#include "sim/lower/task_names.hpp"

namespace stagecraft {
namespace {

// Length of segment `index` of `whole`. `ends` are cumulative weights (equal parts where all are zero).
// Rounding telescopes: the segments add up to `whole`.
Duration cut(Duration whole, std::span<const Duration> ends, std::size_t index) {
  const Duration sum = ends.back();
  const auto until = [&](std::size_t parts) {
    const Duration weight = parts == 0 ? Duration::zero() : ends[parts - 1];
    const double share = sum > Duration::zero()
                             ? static_cast<double>(weight.count()) / static_cast<double>(sum.count())
                             : static_cast<double>(parts) / static_cast<double>(ends.size());
    return Duration(static_cast<std::int64_t>(static_cast<double>(whole.count()) * share));
  };
  const bool last = index + 1 == ends.size();
  return (last ? whole : until(index + 1)) - until(index);
}

// Number of all-gathers of a unit that this pass triggers. `first`: it is the first forward of its stage.
int count_gathers(const StagePrice& stage, const UnitPrice& unit, const LowerOptions& options, Pass pass,
                  bool first) {
  if (pass == Pass::kForward) return first || !options.gather_once || !stage.kept_gathered ? 1 : 0;
  if (!gives_gradient(pass) || stage.kept_gathered) return 0;
  return unit.backward_gathers;
}

}  // namespace

UnitCounts unit_counts(const StagePrice& stage, const UnitPrice& unit, const LowerOptions& options,
                       int micro_batches) {
  const auto gathers = [&](Pass pass, bool first) {
    return count_gathers(stage, unit, options, pass, first);
  };
  const double others = micro_batches - 1;
  return {.gathers = gathers(Pass::kForward, true) + others * gathers(Pass::kForward, false) +
                     static_cast<double>(micro_batches) * gathers(Pass::kBackward, false),
          .reductions = options.reduce_last ? 1.0 : micro_batches};
}

bool Lowering::gathers_in(const RankPass& pass) const {
  return std::ranges::any_of(stage_price(pass).units, [&](const UnitPrice& unit) {
    return gathers_of(pass, unit) > 0 && unit.gather.total() > Duration::zero();
  });
}

int Lowering::gathers_of(const RankPass& pass, const UnitPrice& unit) const {
  return count_gathers(stage_price(pass), unit, options_, pass.action.pass, pass.first_forward);
}

bool Lowering::reduces_in(const RankPass& pass) const {
  if (!makes_weight_gradients(pass.action.pass)) return false;
  if (options_.reduce_last && !pass.last_backward) return false;
  const StagePrice& stage = stage_price(pass);
  return std::any_of(stage.units.begin(), stage.units.end(),
                     [](const UnitPrice& unit) { return unit.reduce.total() > Duration::zero(); });
}

std::vector<UnitPrice> Lowering::units_of(const RankPass& pass) const {
  std::vector<UnitPrice> units = stage_price(pass).units;
  if (pass.action.pass != Pass::kForward) std::reverse(units.begin(), units.end());
  return units;
}

Lowering::Steps Lowering::segment_of(const RankPass& pass, std::span<const Duration> ends,
                                     std::size_t index) {
  std::vector<TaskPart> parts = parts_of(pass);
  for (TaskPart& part : parts) part.time = cut(part.time, ends, index);
  return steps_of_pass(pass, parts, {});
}

// Of two streams that communicate at once only the longer one slows the device.
Lowering::SegmentKind Lowering::segment_kind(const RankPass& pass, const UnitPrice& unit, Steps segment) {
  PassPrice gather;
  gather.add(unit.gather, gathers_of(pass, unit));
  SegmentKind kind{.segment = std::move(segment), .gather = {}, .reduce = {}, .replicate = {}};
  if (gather.total() > Duration::zero())
    kind.gather =
        steps_of(gather, BesideTask::kParameterGather, options_.overlap_parameters ? unit_load(pass) : 0);
  if (!reduces_in(pass)) return kind;
  const double load = options_.overlap_gradients ? unit_load(pass) : 0;
  if (unit.reduce.total() > Duration::zero())
    kind.reduce = steps_of(unit.reduce, BesideTask::kGradientReduction, load);
  if (unit.replicate.total() > Duration::zero()) {
    Duration outlasts = unit.replicate.total();
    if (options_.overlap_parameters) outlasts -= gather.total();
    if (!options_.reduce_behind) outlasts -= unit.reduce.total();
    const double share =
        to_seconds(std::max(Duration::zero(), outlasts)) / to_seconds(unit.replicate.total());
    kind.replicate = steps_of(unit.replicate, BesideTask::kGradientReplication, load * share);
  }
  return kind;
}

const std::vector<Lowering::SegmentKind>& Lowering::segment_kinds(const RankPass& pass) {
  const Pass of = pass.action.pass;
  auto& kinds = segment_kinds_[{reduces_in(pass), pass.first_forward, of, pass.place, pass.pair}];
  if (!kinds.empty()) return kinds;
  const std::vector<UnitPrice> units = units_of(pass);
  std::vector<Duration> ends;
  for (const UnitPrice& unit : units) {
    const Duration backward = (of != Pass::kWeightGradient ? unit.input_gradient : Duration::zero()) +
                              (of != Pass::kInputGradient ? unit.weight_gradient : Duration::zero());
    const Duration before = ends.empty() ? Duration::zero() : ends.back();
    ends.push_back(before + (of == Pass::kForward ? unit.forward : backward));
  }
  for (std::size_t i = 0; i < units.size(); ++i)
    kinds.push_back(segment_kind(pass, units[i], segment_of(pass, ends, i)));
  return kinds;
}

// Adds a collective to the data stream of one copy of a rank.
//   returns  the last of them
Lowering::Handle Lowering::collective(int rank, RankTasks& tasks, const Steps& steps,
                                      std::optional<Handle> after) {
  const PassTasks added = data_tasks(tasks, steps);
  if (after) start_together(rank, tasks, *after, added.first);
  return added.last;
}

// `first` starts when `after` is done on every copy of the rank. A folded program has one copy, so a plain
// dependency is enough.
void Lowering::start_together(int rank, RankTasks& tasks, Handle after, Handle first) {
  if (options_.replicas == 1) {
    builder_.add_dependency(after, first);
    return;
  }
  auto& all = collectives_[static_cast<std::size_t>(rank)];
  if (tasks.collectives == all.size()) all.emplace_back();
  Collective& one = all[tasks.collectives++];
  one.ready.push_back(after);
  one.tasks.push_back(first);
}

bool Lowering::replicates_beside() const {
  return options_.overlap_gradients && std::ranges::any_of(prices_.stages, [](const StagePrice& stage) {
           return std::ranges::any_of(
               stage.units, [](const UnitPrice& unit) { return unit.replicate.total() > Duration::zero(); });
         });
}

// Adds the all-reduce over replicas that follows a reduction, on its own stream where the rank has one,
// otherwise on the data stream.
void Lowering::add_replication(int rank, RankTasks& tasks, const PendingReduction& reduction,
                               Handle reduced) {
  if (reduction.behind.empty()) return;
  if (!tasks.replicas) {
    std::ignore = data_tasks(tasks, reduction.behind);
    return;
  }
  const PassTasks added = tasks_on(*tasks.replicas, reduction.behind);
  tasks.last_replicas = added.last;
  start_together(rank, tasks, reduced, added.first);
}

// Tasks that wait for the data stream also wait for the all-reduces over replicas.
void Lowering::join_replicas(RankTasks& tasks) {
  if (!tasks.last_replicas) return;
  const Handle joint = builder_.add_task(tasks.data, Duration::zero(), joint_label_);
  builder_.add_dependency(*std::exchange(tasks.last_replicas, std::nullopt), joint);
  tasks.last_data = joint;
}

void Lowering::join_collectives() {
  for (const auto& of_rank : collectives_) {
    for (const Collective& one : of_rank) {
      const Handle start = join(one.ready);
      for (const Handle task : one.tasks) builder_.add_dependency(start, task);
    }
  }
  for (auto& of_rank : collectives_) of_rank.clear();
  for (RankTasks& tasks : ranks_) tasks.collectives = 0;
}

// Puts all pending reductions but the last `keep` on the data stream.
void Lowering::flush_reductions(int rank, RankTasks& tasks, std::size_t keep) {
  while (tasks.reductions.size() > keep) {
    const PendingReduction next = tasks.reductions.front();
    tasks.reductions.erase(tasks.reductions.begin());
    add_replication(rank, tasks, next, collective(rank, tasks, next.steps, next.ready));
  }
}

// At most two units are gathered at once: the gather of the next unit starts when the unit before the current
// one is done. It precedes the reduction of the current unit, which no task waits for. Without overlap it
// starts when the current unit is done.
std::optional<Lowering::Handle> Lowering::add_gather(int rank, RankTasks& tasks, const SegmentKind& kind) {
  if (kind.gather.empty()) return std::nullopt;
  const bool beside_next = !tasks.reductions.empty() && tasks.reductions.back().ready == tasks.segments[0];
  flush_reductions(rank, tasks, beside_next ? 1 : 0);
  return collective(rank, tasks, kind.gather,
                    options_.overlap_parameters ? tasks.segments[1] : tasks.last_compute);
}

void Lowering::add_reduction(int rank, RankTasks& tasks, const SegmentKind& kind, Handle segment) {
  if (kind.reduce.empty()) return;
  flush_reductions(rank, tasks, 0);
  tasks.reductions.push_back({.steps = kind.reduce, .behind = kind.replicate, .ready = segment});
  if (options_.overlap_gradients) return;
  flush_reductions(rank, tasks, 0);
  tasks.blocking.push_back(*tasks.last_data);
}

Lowering::PassTasks Lowering::add_cut_pass(int replica, int rank, const RankPass& pass) {
  RankTasks& tasks = tasks_of(replica, rank);
  PassTasks added{};
  const std::vector<SegmentKind>& kinds = segment_kinds(pass);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::optional<Handle> gather = add_gather(rank, tasks, kinds[i]);
    const PassTasks segment = compute_tasks(tasks, kinds[i].segment, pass.action.micro_batch);
    if (gather) builder_.add_dependency(*gather, segment.first);
    tasks.segments = {segment.last, tasks.segments[0]};
    if (!options_.reduce_behind) add_reduction(rank, tasks, kinds[i], segment.last);
    if (i == 0) added.first = segment.first;
    added.last = segment.last;
  }
  if (options_.reduce_behind)
    for (const SegmentKind& kind : kinds) add_reduction(rank, tasks, kind, added.last);
  return added;
}

}  // namespace stagecraft
