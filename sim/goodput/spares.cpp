#include "sim/goodput/spares.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/closed_forms.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/processes/laws.hpp"

namespace stagecraft {
namespace {

// Most nodes in maintenance at once: starts are a period apart, give or take both jitters.
int in_maintenance(const FailureSpec& spec) {
  double most = 0;
  for (const FailureProcess& process : spec.processes)
    if (const auto* law = std::get_if<Maintenance>(&process.law))
      most += std::ceil(to_seconds(law->duration + 2 * law->jitter) / to_seconds(law->period));
  return static_cast<int>(std::min(most, 1e6));
}

// Are nodes away at a rate that never changes, and independently of each other? Only then is their number
// binomial.
bool is_binomial(const FailureProcess& process, int nodes) {
  const auto* weibull = std::get_if<WeibullNodeFailures>(&process.law);
  return !std::holds_alternative<TraceReplay>(process.law) &&
         !std::holds_alternative<WeibullClusterFailures>(process.law) &&
         (weibull == nullptr || weibull->shape == 1) && !has_lemons(process) &&
         nodes_of_each(process, nodes) <= 1;
}

// Keeps the processes whose nodes come back, without maintenance and without processes that define which
// nodes exist. Beside lemons, which any incident makes, processes that take no node stay too.
FailureSpec with_repairs(const FailureSpec& spec) {
  FailureSpec kept = spec;
  const bool lemons = std::ranges::any_of(spec.processes, has_lemons);
  std::erase_if(kept.processes, [&](const FailureProcess& process) {
    if (says_who_is_there(process.law) || std::holds_alternative<Maintenance>(process.law)) return true;
    const NodeLosses losses = node_losses(spec, process);
    return !std::holds_alternative<TraceReplay>(process.law) && losses.repair_s <= 0 &&
           (losses.share > 0 || !lemons);
  });
  return kept;
}

// 99th percentile over time of the number of nodes away.
class AwayInHistories {
 public:
  AwayInHistories(const FailureSpec& spec, int nodes, int spares) : time_(as_index(nodes + spares) + 1) {
    constexpr int kEnoughLosses = 4'000, kMostHistories = 400;
    int losses = 0;
    for (int repeat = 0; repeat < kMostHistories && losses < kEnoughLosses; ++repeat)
      losses += add(history_of(spec, nodes + spares, 0, repeat, spares), spec.horizon);
  }

  [[nodiscard]] int at_most() const {
    double all = 0, within = 0;
    for (const double time : time_) all += time;
    int away = 0;
    while ((within += time_[as_index(away)]) < 0.99 * all) ++away;
    return away;
  }

 private:
  int add(const History& history, Duration horizon) {
    Duration since{};
    int away = 0, losses = 0;
    for (const Incident& incident : history.incidents) {
      const bool lost = incident.kind == IncidentKind::kRemove;
      if (!lost && incident.kind != IncidentKind::kAdd) continue;
      time_[as_index(away)] += to_seconds(incident.time - since);
      since = incident.time;
      away += lost ? 1 : -1;
      losses += lost ? 1 : 0;
    }
    time_[as_index(away)] += to_seconds(horizon - since);
    return losses;
  }

  std::vector<double> time_;  // time by number of nodes away
};

// Spares beside `maintained` others that cover all nodes away, where nodes and spares fail alike. At most
// twice the nodes: a failure of all nodes defeats any number.
int pool_in_histories(const FailureSpec& spec, int nodes, int maintained) {
  const int most = 2 * (nodes + maintained);
  int spares = 0;
  for (int before = -1; before < spares && spares < most;) {
    before = spares;
    spares = std::clamp(AwayInHistories(spec, nodes, maintained + spares).at_most(), spares, most);
  }
  return spares;
}

bool all_binomial(const FailureSpec& spec, int nodes) {
  return std::ranges::all_of(spec.processes,
                             [nodes](const FailureProcess& process) { return is_binomial(process, nodes); });
}

}  // namespace

int spares_for(const FailureSpec& spec, int nodes) {
  SC_CHECK(nodes >= 1, "a job has a node");
  const int maintained = std::min(nodes, in_maintenance(spec));
  const FailureSpec repaired = with_repairs(spec);
  if (!all_binomial(repaired, nodes)) return maintained + pool_in_histories(repaired, nodes, maintained);
  return maintained + standby_pool(nodes + maintained, unavailable_share(spec, nodes), Spare::kLikeAnyNode);
}

}  // namespace stagecraft
