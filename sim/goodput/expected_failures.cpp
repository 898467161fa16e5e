#include "sim/goodput/expected_failures.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/check.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/processes/cluster_failures.hpp"
#include "sim/goodput/processes/laws.hpp"
#include "sim/goodput/processes/slow_nodes.hpp"

namespace stagecraft {

namespace {

// Moments of a history at which some node is lost, after its start.
std::int64_t losses_in(const History& history) {
  std::int64_t losses = 0;
  std::optional<Duration> last;
  for (const Incident& incident : history.incidents) {
    const bool away = incident.kind == IncidentKind::kRemove && incident.time == Duration::zero();
    if (!is_loss(incident) || away || incident.time == last) continue;
    last = incident.time;
    ++losses;
  }
  return losses;
}

// Failures a day of `nodes` that are all up.
class RatePerDay {
 public:
  RatePerDay(const FailureSpec& spec, const FailureProcess& process, int nodes)
      : spec_(spec), process_(process), nodes_(nodes) {}

  double operator()(const ExponentialFailures& law) const {
    return with_lemons(nodes_ * effective_rate(law, nodes_));
  }
  double operator()(const ComponentFailures& law) const {
    double sum = 0;
    for (const double rate : law.rates_per_node_day) sum += rate;
    return with_lemons(nodes_ * sum);
  }
  double operator()(const WeibullNodeFailures& law) const {
    return with_lemons(nodes_ * law.rate_per_node_day);
  }
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
  // Where the nodes are drawn from the servers of the trace, the mean of some draws.
  double operator()(const TraceReplay& law) const { return counted(law.servers ? kDraws : 1); }
  // A node that is there at the start of an hour leaves within it with its chance p, at any second alike: p
  // losses in 1 - p/2 hours of its presence.
  double operator()(const HourlySpot& law) const {
    double sum = 0;
    for (const double chance : law.remove) sum += chance / (1 - chance / 2);
    return nodes_ * sum;
  }
  double operator()(const FailSlow&) const { return 0; }
  double operator()(const SilentCorruption& law) const { return nodes_ * law.rate_per_node_day; }
  double operator()(const Maintenance&) const { return 0; }

 private:
  static constexpr int kDraws = 8;

  [[nodiscard]] double with_lemons(double rate) const {
    return rate > 0 && has_lemons(process_) ? std::max(rate, counted(kDraws)) : rate;
  }
  [[nodiscard]] double counted(int draws) const {
    FailureSpec alone = spec_;
    alone.processes = {process_};
    std::int64_t losses = 0;
    for (int draw = 0; draw < draws; ++draw) losses += losses_in(history_of(alone, nodes_, 0, draw));
    return static_cast<double>(losses) / draws / (to_seconds(spec_.horizon) / kSecondsPerDay);
  }

  const FailureSpec& spec_;
  const FailureProcess& process_;
  int nodes_;
};

double failures_per_day(const FailureSpec& spec, const FailureProcess& process, int nodes) {
  SC_CHECK(nodes >= 1 && spec.horizon > Duration(0), "somebody fails within some time");
  return std::visit(RatePerDay(spec, process, nodes), process.law);
}

// The mean time of repairs; 0 where there are none.
double mean_seconds(const RepairSpec& repair) {
  if (repair.kind == RepairKind::kConstant) return to_seconds(repair.time);
  if (repair.kind == RepairKind::kNone || repair.times.empty()) return 0;
  double sum = 0;
  for (const Duration time : repair.times) sum += to_seconds(time);
  return sum / static_cast<double>(repair.times.size());
}

}  // namespace

double failures_per_second(const FailureSpec& spec, int nodes) {
  double per_day = 0;
  for (const FailureProcess& process : spec.processes) per_day += failures_per_day(spec, process, nodes);
  return per_day / kSecondsPerDay;
}

double failures_per_second(const FailureSpec& spec, const FailureProcess& process, int nodes) {
  return failures_per_day(spec, process, nodes) / kSecondsPerDay;
}

bool has_lemons(const FailureProcess& process) {
  return lemon_factor(process.law) != 1;
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
    const bool takes_none = std::holds_alternative<SilentCorruption>(process.law);
    const bool records_when =
        std::holds_alternative<TraceReplay>(process.law) || says_who_is_there(process.law);
    if (takes_none || records_when) continue;
    const NodeLosses losses = node_losses(spec, process);
    away += failures_per_second(spec, process, nodes) * nodes_of_each(process, nodes) / nodes * losses.share *
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
