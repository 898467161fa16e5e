#include "sim/resilience/varied_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "base/text.hpp"

namespace stagecraft {
namespace {

// The rate of a law that has one; recorded and hourly laws are as they are.
std::optional<double> rate_of(const FailureLaw& law) {
  return std::visit(
      [](const auto& process) -> std::optional<double> {
        using Law = std::decay_t<decltype(process)>;
        if constexpr (std::is_same_v<Law, ComponentFailures>) {
          double sum = 0;
          for (const double rate : process.rates_per_node_day) sum += rate;
          return sum;
        } else if constexpr (requires { process.rate_per_node_day; }) {
          return process.rate_per_node_day;
        } else {
          return std::nullopt;
        }
      },
      law);
}

void scale_rate(FailureLaw& law, double factor) {
  std::visit(
      [factor](auto& process) {
        using Law = std::decay_t<decltype(process)>;
        if constexpr (std::is_same_v<Law, ComponentFailures>) {
          for (double& rate : process.rates_per_node_day) rate *= factor;
        } else if constexpr (std::is_same_v<Law, BurstFailures>) {
          process.rate_per_node_day *= factor;
          if (process.bursts_per_day) *process.bursts_per_day *= factor;
        } else if constexpr (std::is_same_v<Law, FailSlow>) {
          if (process.rate_per_node_day) *process.rate_per_node_day *= factor;
        } else if constexpr (requires { process.rate_per_node_day; }) {
          process.rate_per_node_day *= factor;
        }
      },
      law);
}

std::string rate_words(const FailureSpec& spec) {
  std::vector<std::string> rates;
  for (const FailureProcess& process : spec.processes)
    if (const std::optional<double> rate = rate_of(process.law); rate && *rate > 0)
      rates.push_back(fmt::format("{:.3g}", *rate));
  return join(rates, ", ");
}

// The words of a figure of the laws of one kind, and its change; "" where there is none of it.
template <class Law, class Value>
std::string law_words(const FailureSpec& spec, const Value& value) {
  std::vector<std::string> all;
  for (const FailureProcess& process : spec.processes)
    if (const auto* law = std::get_if<Law>(&process.law))
      if (std::string text = value(*law); !text.empty()) all.push_back(std::move(text));
  return join(all, ", ");
}

template <class Law, class Change>
void change_laws(FailureSpec& spec, const Change& change) {
  for (FailureProcess& process : spec.processes)
    if (auto* law = std::get_if<Law>(&process.law)) change(*law);
}

std::string bursts_words(const FailureSpec& spec) {
  return law_words<BurstFailures>(spec, [](const BurstFailures& law) {
    return law.bursts_per_day.value_or(0) > 0 ? fmt::format("{:.3g}", *law.bursts_per_day) : "";
  });
}

void scale_bursts(FailureSpec& spec, double factor) {
  change_laws<BurstFailures>(spec, [factor](BurstFailures& law) {
    if (law.bursts_per_day) *law.bursts_per_day *= factor;
  });
}

std::string slow_share_words(const FailureSpec& spec) {
  return law_words<FailSlow>(
      spec, [](const FailSlow& law) { return law.share > 0 ? fmt::format("{:.3g}", law.share) : ""; });
}

// All nodes slow at all times would be a rate without end.
void scale_slow_share(FailureSpec& spec, double factor) {
  change_laws<FailSlow>(spec, [factor](FailSlow& law) {
    constexpr double kMost = 0.95;
    law.share = std::min(std::max(kMost, law.share), law.share * factor);
  });
}

std::string slowdown_words(const FailureSpec& spec) {
  return law_words<FailSlow>(spec, [](const FailSlow& law) {
    return law.low_factor == law.high_factor ? fmt::format("{:g}", law.low_factor)
                                             : fmt::format("{:g} to {:g}", law.low_factor, law.high_factor);
  });
}

// What it is above 1.
void scale_slowdown(FailureSpec& spec, double factor) {
  change_laws<FailSlow>(spec, [factor](FailSlow& law) {
    for (double* slow : {&law.low_factor, &law.high_factor}) *slow = 1 + (*slow - 1) * factor;
  });
}

std::string discovery_words(const FailureSpec& spec) {
  return law_words<SilentCorruption>(spec, [](const SilentCorruption& law) {
    return law.discovery > Duration::zero() ? human(law.discovery) : "";
  });
}

void scale_discovery(FailureSpec& spec, double factor) {
  change_laws<SilentCorruption>(
      spec, [factor](SilentCorruption& law) { law.discovery = scaled(law.discovery, factor); });
}

template <Duration Maintenance::*time>
std::string maintenance_words(const FailureSpec& spec) {
  return law_words<Maintenance>(
      spec, [](const Maintenance& law) { return law.*time > Duration::zero() ? human(law.*time) : ""; });
}

// The jitter stays within half a period.
void scale_period(FailureSpec& spec, double factor) {
  change_laws<Maintenance>(spec, [factor](Maintenance& law) {
    law.period = scaled(law.period, factor);
    law.jitter = scaled(law.jitter, std::min(factor, 1.0));
  });
}

void scale_absence(FailureSpec& spec, double factor) {
  change_laws<Maintenance>(spec, [factor](Maintenance& law) { law.duration = scaled(law.duration, factor); });
}

std::string detect_words(const FailureSpec& spec) {
  if (spec.detect) return *spec.detect > Duration::zero() ? human(*spec.detect) : "";
  Duration least = Duration::max(), most{};
  for (const FailureProcess& process : spec.processes)
    for (const Cause& cause : process.causes) {
      least = std::min(least, cause.detect);
      most = std::max(most, cause.detect);
    }
  if (most == Duration::zero()) return "";
  return least == most ? human(most) : human(least) + " to " + human(most);
}

void scale_detect(FailureSpec& spec, double factor) {
  if (spec.detect) spec.detect = scaled(*spec.detect, factor);
  for (FailureProcess& process : spec.processes)
    for (Cause& cause : process.causes) cause.detect = scaled(cause.detect, factor);
}

std::string restart_words(const FailureSpec& spec) {
  std::vector<std::string> rows;
  for (const auto& [gpus, time] : spec.policy.restart) rows.push_back(human(time));
  if (rows.size() > 2) return rows.front() + " to " + rows.back();
  return join(rows, " to ");
}

void scale_restart(FailureSpec& spec, double factor) {
  for (auto& [gpus, time] : spec.policy.restart) time = scaled(time, factor);
}

std::string repair_words(const FailureSpec& spec) {
  const RepairSpec& repair = spec.repair;
  if (repair.kind == RepairKind::kConstant) return human(repair.time);
  if (repair.kind == RepairKind::kEmpirical && !repair.times.empty())
    return "median " + human(repair.times[repair.times.size() / 2]);
  return "";
}

void scale_repair(RepairSpec& repair, double factor) {
  repair.time = scaled(repair.time, factor);
  for (Duration& time : repair.times) time = scaled(time, factor);
}

void scale_repairs(FailureSpec& spec, double factor) {
  scale_repair(spec.repair, factor);
  for (FailureProcess& process : spec.processes)
    for (Cause& cause : process.causes)
      if (cause.repair) scale_repair(*cause.repair, factor);
}

// Text of a checkpoint write rate; empty where checkpoint times are given.
template <Bandwidth CheckpointSpec::*rate>
std::string write_rate_words(const FailureSpec& spec) {
  const CheckpointSpec& checkpoint = spec.checkpoint;
  if (checkpoint.block || checkpoint.persist) return "";
  return (checkpoint.*rate).count() > 0 ? human(checkpoint.*rate) : "";
}

template <Bandwidth CheckpointSpec::*rate>
void scale_write_rate(FailureSpec& spec, double factor) {
  spec.checkpoint.*rate = Bandwidth((spec.checkpoint.*rate).count() * factor);
}

template <Bandwidth CheckpointSpec::*rate>
constexpr VariedInput write_rate(const char* path) {
  return {path, write_rate_words<rate>, scale_write_rate<rate>};
}

// What it is above 1.
std::string persist_slowdown_words(const FailureSpec& spec) {
  return spec.checkpoint.slowdown > 1 ? fmt::format("{:g}", spec.checkpoint.slowdown) : "";
}

void scale_persist_slowdown(FailureSpec& spec, double factor) {
  spec.checkpoint.slowdown = 1 + (spec.checkpoint.slowdown - 1) * factor;
}

std::string block_words(const FailureSpec& spec) {
  return spec.checkpoint.block ? human(*spec.checkpoint.block) : "";
}

void scale_block(FailureSpec& spec, double factor) {
  if (spec.checkpoint.block) spec.checkpoint.block = scaled(*spec.checkpoint.block, factor);
}

std::string interval_words(const FailureSpec& spec) {
  return spec.checkpoint.rule == IntervalRule::kTime ? human(spec.checkpoint.interval) : "";
}

void scale_interval(FailureSpec& spec, double factor) {
  spec.checkpoint.interval = scaled(spec.checkpoint.interval, factor);
}

std::string reconfigure_words(const FailureSpec& spec) {
  return spec.policy.reconfigure ? human(*spec.policy.reconfigure) : "";
}

void scale_reconfigure(FailureSpec& spec, double factor) {
  if (spec.policy.reconfigure) spec.policy.reconfigure = scaled(*spec.policy.reconfigure, factor);
}

// Text of a time, if the policy reads it.
template <PolicyKind kind, Duration PolicySpec::*time>
std::string policy_words(const FailureSpec& spec) {
  const Duration value = spec.policy.*time;
  return spec.policy.kind == kind && value > Duration::zero() ? human(value) : "";
}

template <Duration PolicySpec::*time>
void scale_policy(FailureSpec& spec, double factor) {
  spec.policy.*time = scaled(spec.policy.*time, factor);
}

template <PolicyKind kind, Duration PolicySpec::*time>
constexpr VariedInput policy_time(const char* path) {
  return {path, policy_words<kind, time>, scale_policy<time>};
}

std::string spares_words(const FailureSpec& spec) {
  const PolicySpec& policy = spec.policy;
  return policy.has_spares() && policy.spares.value_or(0) > 0 ? std::to_string(*policy.spares) : "";
}

void scale_spares(FailureSpec& spec, double factor) {
  spec.policy.spares = static_cast<int>(spec.policy.spares.value_or(0) * factor);
}

std::string checkpoint_every_words(const FailureSpec& spec) {
  const std::int64_t steps = spec.policy.checkpoint_every;
  return spec.policy.kind == PolicyKind::kVaruna && steps > 1 ? fmt::format("{} steps", steps) : "";
}

void scale_checkpoint_every(FailureSpec& spec, double factor) {
  const double steps = static_cast<double>(spec.policy.checkpoint_every) * factor;
  spec.policy.checkpoint_every = std::max<std::int64_t>(1, std::llround(steps));
}

void scale_rates(FailureSpec& spec, double factor) {
  for (FailureProcess& process : spec.processes) scale_rate(process.law, factor);
}

constexpr VariedInput kInputs[] = {
    {"failures.process.rate_per_node_day", rate_words, scale_rates},
    {"failures.process.bursts_per_day", bursts_words, scale_bursts},
    {"failures.process.share", slow_share_words, scale_slow_share},
    {"failures.process.slowdown", slowdown_words, scale_slowdown},
    {"failures.process.discovery", discovery_words, scale_discovery},
    {"failures.process.period", maintenance_words<&Maintenance::period>, scale_period},
    {"failures.process.duration", maintenance_words<&Maintenance::duration>, scale_absence},
    {"failures.policy.restart", restart_words, scale_restart},
    {"failures.policy.spares", spares_words, scale_spares, true},
    {"failures.policy.reconfigure", reconfigure_words, scale_reconfigure},
    policy_time<PolicyKind::kHotSpares, &PolicySpec::swap>("failures.policy.swap"),
    policy_time<PolicyKind::kElastic, &PolicySpec::stall>("failures.policy.stall"),
    policy_time<PolicyKind::kElastic, &PolicySpec::degraded>("failures.policy.degraded"),
    policy_time<PolicyKind::kElastic, &PolicySpec::rejoin>("failures.policy.rejoin"),
    policy_time<PolicyKind::kElastic, &PolicySpec::quorum>("failures.policy.quorum"),
    {"failures.policy.checkpoint_every", checkpoint_every_words, scale_checkpoint_every},
    policy_time<PolicyKind::kVaruna, &PolicySpec::transient_wait>("failures.policy.transient_wait"),
    policy_time<PolicyKind::kVaruna, &PolicySpec::announced_wait>("failures.policy.announced_wait"),
    policy_time<PolicyKind::kBamboo, &PolicySpec::global_rendezvous>("failures.policy.global_rendezvous"),
    policy_time<PolicyKind::kBamboo, &PolicySpec::local_rendezvous>("failures.policy.local_rendezvous"),
    {"failures.detect", detect_words, scale_detect},
    {"failures.repair", repair_words, scale_repairs},
    {"failures.checkpoint.interval", interval_words, scale_interval},
    {"failures.checkpoint.block", block_words, scale_block},
    write_rate<&CheckpointSpec::node_write>("failures.checkpoint.node_write"),
    write_rate<&CheckpointSpec::storage_write>("failures.checkpoint.storage_write"),
    write_rate<&CheckpointSpec::snapshot>("failures.checkpoint.snapshot"),
    {"failures.checkpoint.slowdown", persist_slowdown_words, scale_persist_slowdown},
};

}  // namespace

std::span<const VariedInput> varied_inputs() {
  return kInputs;
}

}  // namespace stagecraft
