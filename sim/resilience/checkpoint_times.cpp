#include "sim/resilience/checkpoint_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "sim/goodput/closed_forms.hpp"

namespace stagecraft {
namespace {

// Seconds: an interval that no job lives to see.
constexpr double kCentury = 100 * kSecondsPerYear;

// No bandwidth given: nothing to wait for.
Duration transfer_time(double bytes, Bandwidth rate) {
  if (rate.count() <= 0) return Duration::zero();
  return from_seconds(std::min(bytes / rate.count(), kCentury));  // longer ones are refused
}

// The time of bytes that are spread evenly over the nodes, through their own and the common bandwidth.
Duration spread(double bytes, int nodes, Bandwidth of_node, Bandwidth of_all) {
  return std::max(transfer_time(bytes / nodes, of_node), transfer_time(bytes, of_all));
}

// The time of so many copies of a node's state over its network.
Duration state_over_network(const CheckpointedJob& job, int copies) {
  return transfer_time(static_cast<double>(job.costs.state_of_node.count()) * copies, job.costs.node_network);
}

// Each byte is read once; replicas get it over the network.
Duration load_time(const CheckpointSpec& spec, const CheckpointedJob& job, double bytes) {
  if (spec.load) return *spec.load;
  return std::max(spread(bytes, job.nodes, spec.node_read, spec.storage_read), state_over_network(job, 1));
}

// Number of iterations whose idle network time fits a node's state copies; nullopt: the network never idles.
std::optional<std::int64_t> copy_every(const CheckpointSpec& spec, const CheckpointedJob& job) {
  const Duration copy = state_over_network(job, spec.copies - 1);
  if (copy == Duration::zero()) return 1;
  const Duration idle = job.iteration - job.costs.network_busy;
  if (idle <= Duration::zero()) return std::nullopt;
  return (copy + idle - Duration(1)) / idle;
}

bool has_hosts(const CheckpointSpec& spec, const CheckpointedJob& job, Diagnostics& diagnostics) {
  if (spec.copies <= job.nodes) return true;
  diagnostics.error({.code = "policy-constraint",
                     .path = "failures.checkpoint.copies",
                     .message = fmt::format("{} hosts are to hold each shard, and the job has {}",
                                            spec.copies, counted(job.nodes, "node")),
                     .hint = job.nodes > 1 ? "use fewer copies, or mode: async" : "use mode: async"});
  return false;
}

bool lasts_too_long(const Checkpointing& times, Diagnostics& diagnostics) {
  const Duration longest = std::max({times.block, times.persist, times.load, times.copy_load});
  if (longest <= kLongestFailureTime) return false;
  diagnostics.error({.code = "out-of-range",
                     .path = "failures.checkpoint",
                     .message = "to write or load the state takes more than 20 years",
                     .hint = "check bytes and bandwidths"});
  return true;
}

// Adds the copies in host memories; false with a diagnostic where they are impossible.
bool add_copies(const CheckpointSpec& spec, const CheckpointedJob& job, Checkpointing& times,
                Diagnostics& diagnostics) {
  if (!has_hosts(spec, job, diagnostics)) return false;
  times.copy_load = state_over_network(job, 1);
  if (lasts_too_long(times, diagnostics)) return false;
  const std::optional<std::int64_t> every = copy_every(spec, job);
  if (!every) {
    diagnostics.error(
        {.code = "no-idle-network",
         .path = "failures.checkpoint.mode",
         .message = fmt::format("an iteration of {} keeps the network of a node busy for {}: no copies to "
                                "other hosts fit in",
                                human(job.iteration), human(job.costs.network_busy)),
         .hint = "use mode: async, or a fabric with more bandwidth"});
    return false;
  }
  times.copy_every = *every;
  return true;
}

// Interval of the rule in training time; zero where `every_steps` counts.
Duration interval_of(const CheckpointSpec& spec, const CheckpointedJob& job, const Checkpointing& times) {
  if (spec.rule == IntervalRule::kSteps) return Duration::zero();
  if (spec.rule == IntervalRule::kTime) return spec.interval;
  const double cost = to_seconds(cost_of(times));
  // Without failures no checkpoint pays; without a cost one per step does.
  if (job.failures_per_s <= 0) return from_seconds(kCentury);
  if (cost <= 0) return job.iteration;
  const auto rule = spec.rule == IntervalRule::kYoung  ? young_interval
                    : spec.rule == IntervalRule::kDaly ? daly_interval
                                                       : optimal_interval;
  return from_seconds(std::min(rule(cost, 1 / job.failures_per_s), kCentury));
}

}  // namespace

bool is_countable(const StepsBetween& interval, Diagnostics& diagnostics) {
  if (interval.iteration <= Duration::zero()) return true;
  const std::int64_t most = kLongestFailureTime / interval.iteration;
  if (interval.steps <= most) return true;
  diagnostics.error({.code = "out-of-range",
                     .path = interval.path,
                     .message = fmt::format("{} steps of {} are more than 20 years", interval.steps,
                                            human(interval.iteration)),
                     .hint = "goodput is about days and weeks"});
  return false;
}

Duration cost_of(const Checkpointing& checkpointing) {
  return checkpointing.block + checkpointing.slowed_by();
}

bool is_never(Duration interval) {
  return interval >= from_seconds(kCentury);
}

// A step that ends with the persist still counts as before it.
std::int64_t steps_until_written(const Checkpointing& checkpointing, Duration iteration) {
  return 1 + (checkpointing.persist - checkpointing.slowed_by()) / iteration;
}

std::optional<Checkpointing> checkpointing_of(const CheckpointSpec& spec, const CheckpointedJob& job,
                                              Diagnostics& diagnostics) {
  Checkpointing times{.mode = spec.mode, .slowdown = spec.slowdown, .copies = spec.copies};
  const Bytes bytes = spec.bytes.value_or(job.costs.state);
  const auto count = static_cast<double>(bytes.count());
  const Duration write = spread(count, job.nodes, spec.node_write, spec.storage_write);
  if (spec.mode == CheckpointMode::kSync) {
    times.block = spec.block.value_or(write);
    times.slowdown = 1;
  } else {
    const Bandwidth to_host = spec.snapshot.count() > 0 ? spec.snapshot : job.costs.gpu_to_host;
    times.block = spec.block.value_or(transfer_time(count / job.gpus, to_host));
    times.persist = spec.persist.value_or(write);
  }
  times.load = load_time(spec, job, count);
  if (lasts_too_long(times, diagnostics)) return std::nullopt;
  if (spec.mode == CheckpointMode::kInMemory && !add_copies(spec, job, times, diagnostics))
    return std::nullopt;
  if (spec.rule == IntervalRule::kSteps) times.every_steps = spec.every_steps;
  times.interval = interval_of(spec, job, times);
  return times;
}

std::optional<BestInterval> best_interval(const Checkpointing& checkpointing, Duration iteration,
                                          double failures_per_s) {
  const double cost = to_seconds(cost_of(checkpointing));
  if (failures_per_s <= 0 || iteration <= Duration::zero()) return std::nullopt;
  const double best = cost > 0 ? optimal_interval(cost, 1 / failures_per_s) : 0;
  if (best >= kCentury) return std::nullopt;
  const std::int64_t steps = std::max<std::int64_t>(std::llround(best / to_seconds(iteration)),
                                                    steps_until_written(checkpointing, iteration));
  return BestInterval{.time = steps * iteration, .steps = steps};
}

}  // namespace stagecraft
