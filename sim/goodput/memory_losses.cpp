#include "sim/goodput/memory_losses.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/check.hpp"
#include "sim/goodput/closed_forms.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/log_gamma.hpp"
#include "sim/goodput/processes/cluster_failures.hpp"

namespace stagecraft {
namespace {

// P(a whole group of m nodes is lost when `lost` of `nodes` are). Nodes beyond the last whole group are in no
// group.
double gone(int nodes, int m, int lost) {
  const int grouped = nodes - nodes % m;
  if (grouped == 0 || lost < m) return 0;
  double survives = 0;
  for (int j = std::max(0, lost - (nodes - grouped)); j <= std::min(lost, grouped); ++j)
    survives +=
        recoverable_probability(grouped, m, j) *
        std::exp(log_choose(grouped, j) + log_choose(nodes - grouped, lost - j) - log_choose(nodes, lost));
  return 1 - survives;
}

// gone() for a burst of any size.
double gone_in_a_burst(const BurstFailures& law, int nodes, int m) {
  constexpr double kHardly = 1e-9;
  double sum = 0, weights = 0;
  for (const auto& [size, weight] : law.sizes) {
    sum += weight * gone(nodes, m, std::min(size, nodes));
    weights += weight;
  }
  if (!law.sizes.empty()) return sum / weights;
  // Geometric law; sizes beyond the domain count as the whole domain.
  const double larger = 1 - 1 / law.mean_size;
  double rest = std::pow(larger, m - 1), some = 0;
  for (int size = m; size < nodes && rest > kHardly && some < 1 - kHardly; ++size) {
    some = gone(nodes, m, size);
    sum += rest * (1 - larger) * some;
    rest *= larger;
  }
  return nodes < m ? 0 : sum + rest;
}

// Weighted by the number of nodes in each domain; the last one may have fewer.
double burst_losses(const BurstFailures& law, double bursts, int nodes, int m) {
  const auto share = [&](int domain) {
    return law.bursts_per_day ? static_cast<double>(domain) : domain / mean_burst(law, domain);
  };
  const int whole = nodes / law.domain_nodes, rest = nodes % law.domain_nodes;
  const double of_whole = whole > 0 ? whole * share(law.domain_nodes) : 0;
  const double of_rest = rest > 0 ? share(rest) : 0;
  double sum = 0;
  if (of_whole > 0) sum += of_whole * gone_in_a_burst(law, law.domain_nodes, m);
  if (of_rest > 0) sum += of_rest * gone_in_a_burst(law, rest, m);
  return bursts * sum / (of_whole + of_rest);
}

// Rates a second: of failures that stop the job, and of nodes that are lost one by one. `stalled` is the sum over
// these nodes of the stall that each begins.
struct SingleLosses {
  double stops = 0, nodes = 0, stalled = 0;
};

// Stalls in which nodes that are lost one by one are a whole group, a second of training.
double coincidences(const SingleLosses& alone, int nodes, int m) {
  if (alone.nodes <= 0) return 0;
  constexpr double kHardly = 1e-9;
  const double again = -std::expm1(-alone.stops * alone.stalled / alone.nodes);
  const double of_a_failure = std::min(1.0, alone.nodes / alone.stops);
  const auto another = [&](int lost) { return of_a_failure * (nodes - lost) / nodes; };
  // Is one more node lost in the stall?
  const auto goes_on = [&](int lost) { return again * another(lost) / (1 - again * (1 - another(lost))); };
  double more = of_a_failure + (1 - of_a_failure) * goes_on(0), sum = 0, some = 0;
  for (int lost = 1; lost < nodes && some < 1 - kHardly && more > kHardly * sum; ++lost) {
    some = gone(nodes, m, lost);
    sum += more * (1 - goes_on(lost)) * some;
    more *= goes_on(lost);
  }
  return alone.stops * (sum + more);
}

}  // namespace

double memory_losses_per_second(const FailureSpec& spec, int nodes, const HostCopies& how) {
  SC_CHECK(nodes >= 1 && how.copies >= 1, "a shard has at least its own host");
  const int m = std::min(how.copies, nodes);
  double losses = 0;
  SingleLosses alone;
  for (const FailureProcess& process : spec.processes) {
    const double failures = failures_per_second(spec, process, nodes);
    if (failures <= 0) continue;
    if (const auto* corruption = std::get_if<SilentCorruption>(&process.law)) {
      losses += corruption->discovery > Duration::zero() ? failures : 0;
      continue;
    }
    alone.stops += failures;
    if (std::holds_alternative<TraceReplay>(process.law) || std::holds_alternative<HourlySpot>(process.law)) {
      losses += failures;
    } else {
      const NodeLosses of_nodes = node_losses(spec, process);
      const double rate = failures * of_nodes.share;
      const auto* bursts = std::get_if<BurstFailures>(&process.law);
      if (bursts != nullptr) losses += burst_losses(*bursts, rate, nodes, m);
      if (bursts != nullptr && m == 1) continue;
      const double lost = rate * nodes_of_each(process, nodes);
      alone.nodes += lost;
      alone.stalled +=
          lost * (of_nodes.detect_s + to_seconds(how.stall) + (how.waits ? of_nodes.repair_s : 0));
    }
  }
  return std::min(losses + coincidences(alone, nodes, m), failures_per_second(spec, nodes));
}

}  // namespace stagecraft
