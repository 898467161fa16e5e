#include "sim/scenario/load_failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "sim/goodput/processes/laws.hpp"
#include "sim/scenario/failure_defaults.hpp"
#include "sim/scenario/load_failure_process.hpp"
#include "sim/scenario/load_policy.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMaxRepeats = 1'000'000;
constexpr std::size_t kMaxProcesses = 255;  // the number of a process has eight bits of a stream's key
constexpr Duration kLongestHorizon = std::chrono::hours(24 * 36'500);
constexpr double kMostIncidents = 1e7;  // limit per repeat: with more, a run would not end or fit into memory

// Incidents of one node within the horizon, and their growth with each of its first 19.
struct GrowingRate {
  double incidents = 0, growth = 1;
};

// The most incidents of a node that others than lemons' laws hit so often. It has the next one of the 19 only
// if a time to it that begins with the horizon ends within.
double incidents_of_lemon(double others, std::vector<GrowingRate> laws) {
  constexpr int kGrows = 19;
  double sum = 0, chance = 1;
  for (int past = 0; past < kGrows; ++past) {
    double rate = others;
    for (GrowingRate& law : laws) {
      rate += law.incidents;
      law.incidents *= law.growth;
    }
    chance *= 1 - std::exp(-rate);
    sum += chance;
  }
  for (const GrowingRate& law : laws) sum += chance * law.incidents;
  return sum;
}

// Incidents within the horizon, at most.
double incidents_within(const FailureSpec& spec, int nodes) {
  double plain = 0;
  std::vector<GrowingRate> lemons;
  for (const FailureProcess& process : spec.processes) {
    const double all = most_incidents_per_day(process.law, nodes) * to_seconds(spec.horizon) / kSecondsPerDay;
    const double growth = lemon_factor(process.law);
    if (growth == 1)
      plain += all;
    else
      lemons.push_back({.incidents = all / nodes, .growth = growth});
  }
  if (lemons.empty()) return plain;
  return plain + nodes * incidents_of_lemon(plain / nodes, std::move(lemons));
}

// `process: exponential`, {kind: …}, or a list of them.
std::vector<FailureProcess> load_processes(YamlMap& failures, const ProcessContext& context) {
  std::vector<FailureProcess> processes;
  const std::string path = failures.path_of("process");
  const YamlNode* node = failures.get("process");
  failures.accepts("process", {.kind = KeyForm::Kind::kChoice, .words = to_strings(kFailureLawNames)});
  YamlNode named;
  if (node == nullptr || node->kind == YamlNode::Kind::kScalar) {
    if (node != nullptr) {
      named.kind = YamlNode::Kind::kMap;
      named.where = node->where;
      named.entries = {{.key = "kind", .where = node->where, .value = *node}};
    }
    YamlMap map(node == nullptr ? nullptr : &named, path, failures.where_of("process"),
                failures.diagnostics(), &context.origins);
    processes.push_back(load_failure_process(map, context));
    return processes;
  }
  if (node->kind != YamlNode::Kind::kSequence) {
    YamlMap map = failures.map("process");
    if (map.present()) processes.push_back(load_failure_process(map, context));
    return processes;
  }
  if (node->items.size() > kMaxProcesses)
    failures.error("process", "wrong-length",
                   fmt::format("{} processes are more than {}", node->items.size(), kMaxProcesses));
  for (std::size_t i = 0; i < node->items.size() && i < kMaxProcesses; ++i) {
    YamlMap map(&node->items[i], fmt::format("{}.{}", path, i), node->items[i].where, failures.diagnostics(),
                &context.origins);
    if (map.present()) processes.push_back(load_failure_process(map, context));
  }
  return processes;
}

bool any_needs_repair(const FailureSpec& spec) {
  for (const FailureProcess& process : spec.processes)
    for (const Cause& cause : process.causes)
      if (breaks_nodes(process.law) && cause.severity == FailureSeverity::kNode && !cause.repair) return true;
  return false;
}

Duration load_horizon(DefaultedMap& in) {
  const YamlNode* given = in.map().get("horizon");
  if (given != nullptr && given->kind == YamlNode::Kind::kScalar &&
      parse_number(given->text).value_or(0) > 0) {
    in.map().error("horizon", "no-unit", fmt::format("{} has no unit", in_quotes(given->text)),
                   fmt::format("{} days? units are ns us ms s min h days", given->text));
    return {};
  }
  const ErrorWatch watch(in.map().diagnostics());
  const Duration horizon = in.duration("horizon");
  if (!watch.clean()) return horizon;
  if (horizon <= Duration(0) || horizon > kLongestHorizon)
    in.map().error("horizon", "out-of-range",
                   fmt::format("{} is not above 0 and at most 100 years", human(horizon)),
                   "goodput is about days and weeks");
  return horizon;
}

struct TimeCheck {
  YamlMap& failures;
  void operator()(const char* section, const std::string& name, Duration time) const {
    if (time <= kLongestFailureTime) return;
    failures.error(section, "out-of-range", fmt::format("{}: {} is more than 20 years", name, human(time)),
                   "goodput is about days and weeks");
  }
};

Duration longest(const RepairSpec& repair) {
  return repair.times.empty() ? repair.time : std::max(repair.time, repair.times.back());  // they are sorted
}

void check_times(const FailureProcess& process, const TimeCheck& check) {
  for (const Cause& cause : process.causes) {
    check("process", "detect", cause.detect);
    if (cause.repair) check("process", "repair", longest(*cause.repair));
  }
  const auto of_law = [&](const auto& law) {
    if constexpr (requires { law.creation; }) check("process", "creation", law.creation);
    if constexpr (requires { law.longest; }) check("process", "longest", law.longest);
    if constexpr (requires { law.discovery; }) check("process", "discovery", law.discovery);
    if constexpr (requires { law.notice; }) {
      check("process", "period", law.period);
      check("process", "notice", law.notice);
      check("process", "duration", law.duration);
    }
  };
  std::visit(of_law, process.law);
}

void check_times(const FailureSpec& spec, const TimeCheck& check) {
  const PolicySpec& policy = spec.policy;
  for (const auto& [gpus, time] : policy.restart) check("policy", "restart", time);
  check("policy", "swap", policy.swap);
  check("policy", "reconfigure", policy.reconfigure.value_or(Duration{}));
  check("policy", "global_rendezvous", policy.global_rendezvous);
  check("policy", "local_rendezvous", policy.local_rendezvous);
  check("policy", "transient_wait", policy.transient_wait);
  check("policy", "announced_wait", policy.announced_wait);
  check("policy", "notice", policy.notice);
  check("policy", "stall", policy.stall);
  check("policy", "degraded", policy.degraded);
  check("policy", "rejoin", policy.rejoin);
  check("policy", "quorum", policy.quorum);
  check("policy", "slow_nodes.lasts", policy.slow.lasts.value_or(Duration{}));
  check("checkpoint", "interval", spec.checkpoint.interval);
  check("checkpoint", "block", spec.checkpoint.block.value_or(Duration{}));
  check("checkpoint", "persist", spec.checkpoint.persist.value_or(Duration{}));
  check("checkpoint", "load", spec.checkpoint.load.value_or(Duration{}));
  check("detect", "detect", spec.detect.value_or(Duration{}));
  check("repair", "repair", longest(spec.repair));
  for (const FailureProcess& process : spec.processes) check_times(process, check);
}

void check(YamlMap& failures, const FailureSpec& spec, const ClusterSpec* cluster) {
  check_times(spec, {.failures = failures});
  int members = 0;
  for (const FailureProcess& process : spec.processes) members += says_who_is_there(process.law) ? 1 : 0;
  if (members > 1)
    failures.error("process", "contradiction", fmt::format("{} processes say which nodes there are", members),
                   "keep one trace of events or counts, or one spot market");
  const double incidents = incidents_within(spec, nodes_of(cluster));
  if (incidents > kMostIncidents)
    failures.error(
        "process", "out-of-range",
        fmt::format("some {:.1e} incidents within the horizon are more than the {:.0e} that a run holds",
                    incidents, kMostIncidents),
        "lower the rate, or shorten the horizon");
}

}  // namespace

std::optional<FailureSpec> load_failures(YamlMap& root, const FailuresContext& context) {
  if (!root.has("failures")) return std::nullopt;
  YamlMap map = root.map("failures");
  if (!map.present()) return std::nullopt;
  const ErrorWatch watch(map.diagnostics());
  FailureDefaults defaults(context.places.library, map.diagnostics(), context.assumed);
  const ProcessContext processes{
      .defaults = defaults, .cluster = context.cluster, .places = context.places, .origins = context.origins};
  DefaultedMap in(map, defaults);
  FailureSpec spec;
  spec.processes = load_processes(map, processes);
  const bool nodes_are_said = std::ranges::any_of(
      spec.processes, [](const FailureProcess& process) { return says_who_is_there(process.law); });
  spec.policy = load_policy(map, defaults, nodes_are_said);
  spec.checkpoint = load_checkpoint(map, defaults, context.cluster);
  if (map.has("repair") || any_needs_repair(spec)) spec.repair = load_repair(map, "repair", processes);
  if (map.has("detect")) spec.detect = map.duration("detect");
  spec.horizon = load_horizon(in);
  spec.repeats = static_cast<int>(in.integer("repeats", {.min = 1, .max = kMaxRepeats}));
  map.finish();
  if (watch.clean()) check(map, spec, context.cluster);
  return spec;
}

}  // namespace stagecraft
