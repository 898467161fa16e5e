#include "sim/goodput/history.hpp"

#include <algorithm>
#include <variant>

#include "base/check.hpp"
#include "sim/goodput/processes/cluster_failures.hpp"
#include "sim/goodput/processes/fleet.hpp"
#include "sim/goodput/processes/laws.hpp"
#include "sim/goodput/processes/slow_nodes.hpp"
#include "sim/goodput/processes/spot.hpp"
#include "sim/goodput/processes/trace_replay.hpp"

namespace stagecraft {

namespace {

// Failures a day of `nodes` that are all up.
class RatePerDay {
 public:
  RatePerDay(int nodes, Duration horizon) : nodes_(nodes), horizon_(horizon) {}

  double operator()(const ExponentialFailures& law) const { return nodes_ * effective_rate(law, nodes_); }
  double operator()(const ComponentFailures& law) const {
    double sum = 0;
    for (const double rate : law.rates_per_node_day) sum += rate;
    return nodes_ * sum;
  }
  double operator()(const WeibullNodeFailures& law) const { return nodes_ * law.rate_per_node_day; }
  double operator()(const WeibullClusterFailures& law) const { return nodes_ * law.rate_per_node_day; }
  // The job sees one failure a burst.
  double operator()(const BurstFailures& law) const {
    if (law.bursts_per_day) return *law.bursts_per_day;
    double bursts = 0;
    for (int first = 0; first < nodes_; first += law.domain_nodes) {
      const int nodes = std::min(law.domain_nodes, nodes_ - first);
      bursts += law.rate_per_node_day * nodes / mean_burst(law, nodes);
    }
    return bursts;
  }
  double operator()(const TraceReplay& law) const {
    if (law.trace.form == TraceForm::kCounts) return counted(law);
    std::vector<Duration> times;
    for (const PlayedRow& row : play(law, horizon_))
      if (row.event == TraceEvent::kRemove || row.event == TraceEvent::kFaultStart) times.push_back(row.time);
    const auto last = std::unique(times.begin(), times.end());
    return static_cast<double>(last - times.begin()) / days();
  }
  double operator()(const HourlySpot& law) const {
    double sum = 0;
    for (const double chance : law.remove) sum += chance;
    return nodes_ * sum;
  }
  double operator()(const FailSlow&) const { return 0; }
  double operator()(const SilentCorruption& law) const { return nodes_ * law.rate_per_node_day; }
  double operator()(const Maintenance&) const { return 0; }

 private:
  [[nodiscard]] double days() const { return to_seconds(horizon_) / kSecondsPerDay; }
  [[nodiscard]] double counted(const TraceReplay& law) const {
    int falls = 0, before = 0;
    for (const PlayedCount& row : play_counts(law, horizon_)) {
      falls += row.nodes < before ? 1 : 0;
      before = row.nodes;
    }
    return falls / days();
  }

  int nodes_;
  Duration horizon_;
};

// The mean time of repairs; 0 where there are none.
double mean_seconds(const RepairSpec& repair) {
  if (repair.kind == RepairKind::kConstant) return to_seconds(repair.time);
  if (repair.kind == RepairKind::kNone || repair.times.empty()) return 0;
  double sum = 0;
  for (const Duration time : repair.times) sum += to_seconds(time);
  return sum / static_cast<double>(repair.times.size());
}

}  // namespace

History history_of(const FailureSpec& spec, int nodes, std::uint64_t seed, int repeat) {
  SC_CHECK(repeat >= 0, "repeats count from 0");
  return Fleet(spec, nodes, {.seed = seed, .repeat = static_cast<std::uint32_t>(repeat)}).run();
}

double failures_per_second(const FailureSpec& spec, int nodes) {
  SC_CHECK(nodes >= 1 && spec.horizon > Duration(0), "somebody fails within some time");
  double per_day = 0;
  for (const FailureProcess& process : spec.processes)
    per_day += std::visit(RatePerDay(nodes, spec.horizon), process.law);
  return per_day / kSecondsPerDay;
}

NodeLosses node_losses(const FailureSpec& spec, const FailureProcess& process) {
  const auto* components = std::get_if<ComponentFailures>(&process.law);
  NodeLosses losses;
  double all = 0;
  for (std::size_t i = 0; i < process.causes.size(); ++i) {
    const Cause& cause = process.causes[i];
    const double weight = components != nullptr ? components->rates_per_node_day.at(i) : cause.share;
    all += weight;
    if (cause.severity != FailureSeverity::kNode) continue;
    losses.share += weight;
    losses.detect_s += weight * to_seconds(spec.detect.value_or(cause.detect));
    losses.repair_s += weight * mean_seconds(cause.repair ? *cause.repair : spec.repair);
  }
  if (losses.share <= 0) return {};
  return {.share = losses.share / all,
          .detect_s = losses.detect_s / losses.share,
          .repair_s = losses.repair_s / losses.share};
}

double nodes_of_each(const FailureProcess& process, int nodes) {
  const auto* bursts = std::get_if<BurstFailures>(&process.law);
  return bursts == nullptr ? 1 : mean_burst(*bursts, std::min(bursts->domain_nodes, nodes));
}

double unavailable_share(const FailureSpec& spec, int nodes) {
  double away = 0;  // seconds of repair for each second of a node
  for (const FailureProcess& process : spec.processes) {
    FailureSpec alone = spec;
    alone.processes = {process};
    const NodeLosses losses = node_losses(spec, process);
    away += failures_per_second(alone, nodes) * nodes_of_each(process, nodes) / nodes * losses.share *
            losses.repair_s;
  }
  return away / (1 + away);
}

SlownessExpected slowness_expected(const FailureSpec& spec, int nodes) {
  double onsets = 0, slow = 0;
  for (const FailureProcess& process : spec.processes) {
    const auto* law = std::get_if<FailSlow>(&process.law);
    if (law == nullptr) continue;
    const double rate = slow_onsets_per_second(*law);
    onsets += rate;
    slow += rate * mean_slow_seconds(*law);
  }
  return {.onsets_per_s = onsets * nodes,
          .lasts = onsets > 0 ? from_seconds(slow / onsets) : Duration::zero()};
}

}  // namespace stagecraft
