#include "sim/goodput/processes/laws.hpp"

#include <cmath>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/processes/clocks.hpp"
#include "sim/goodput/processes/cluster_failures.hpp"
#include "sim/goodput/processes/slow_nodes.hpp"
#include "sim/goodput/processes/spot.hpp"
#include "sim/goodput/processes/trace_replay.hpp"

namespace stagecraft {

namespace {

class Maker {
 public:
  Maker(const FailureSpec& spec, int number, Fleet& fleet) : spec_(spec), number_(number), fleet_(fleet) {}

  std::unique_ptr<Process> operator()(const ExponentialFailures& law) const {
    return clocks({{.rate_per_second = per_second(effective_rate(law, fleet_.job_nodes())),
                    .lemon_factor = law.lemon_factor}});
  }
  std::unique_ptr<Process> operator()(const ComponentFailures& law) const {
    std::vector<ClockLaw> laws;
    for (std::size_t i = 0; i < law.rates_per_node_day.size(); ++i)
      laws.push_back({.rate_per_second = per_second(law.rates_per_node_day[i]),
                      .lemon_factor = law.lemon_factor,
                      .fixed_cause = static_cast<int>(i)});
    return clocks(std::move(laws));
  }
  std::unique_ptr<Process> operator()(const WeibullNodeFailures& law) const {
    return clocks({{.rate_per_second = per_second(law.rate_per_node_day),
                    .shape = law.shape,
                    .lemon_factor = law.lemon_factor}});
  }
  std::unique_ptr<Process> operator()(const WeibullClusterFailures& law) const {
    return std::make_unique<ClusterFailures>(number_, law, fleet_);
  }
  std::unique_ptr<Process> operator()(const BurstFailures& law) const {
    return std::make_unique<Bursts>(number_, law, fleet_);
  }
  std::unique_ptr<Process> operator()(const TraceReplay& law) const {
    if (law.trace.form == TraceForm::kCounts) return std::make_unique<Counts>(number_, law, fleet_);
    if (law.trace.form == TraceForm::kFaults) return std::make_unique<Faults>(number_, spec_, fleet_);
    return std::make_unique<Membership>(number_, play(law, fleet_.horizon()), law.trace.nodes.size(),
                                        law.creation, fleet_);
  }
  std::unique_ptr<Process> operator()(const HourlySpot& law) const {
    const std::vector<TraceRow> rows =
        spot_rows(law, {.capacity = fleet_.nodes(), .horizon = fleet_.horizon(), .key = fleet_.key(number_)});
    std::vector<PlayedRow> played;
    std::size_t names = 0;
    for (const TraceRow& row : rows) {
      played.push_back({.time = row.time,
                        .event = row.event,
                        .node = row.node,
                        .id = static_cast<std::int32_t>(played.size())});
      names += row.event == TraceEvent::kAdd ? 1 : 0;
    }
    return std::make_unique<Membership>(number_, std::move(played), names, law.creation, fleet_);
  }
  std::unique_ptr<Process> operator()(const FailSlow& law) const {
    return std::make_unique<SlowNodes>(number_, law, fleet_);
  }
  std::unique_ptr<Process> operator()(const SilentCorruption& law) const {
    return std::make_unique<Corruptions>(number_, law, fleet_);
  }
  std::unique_ptr<Process> operator()(const Maintenance& law) const {
    return std::make_unique<PlannedMaintenance>(number_, law, fleet_);
  }

 private:
  static double per_second(double per_day) { return per_day / kSecondsPerDay; }
  std::unique_ptr<Process> clocks(std::vector<ClockLaw> laws) const {
    return std::make_unique<NodeClocks>(number_, std::move(laws), fleet_);
  }

  const FailureSpec& spec_;
  int number_;
  Fleet& fleet_;
};

// The most incidents a day of `nodes`.
class IncidentsPerDay {
 public:
  explicit IncidentsPerDay(int nodes) : nodes_(nodes) {}

  double operator()(const ExponentialFailures& law) const { return effective_rate(law, nodes_) * nodes_; }
  double operator()(const ComponentFailures& law) const {
    double sum = 0;
    for (const double rate : law.rates_per_node_day) sum += rate * nodes_;
    return sum;
  }
  double operator()(const WeibullNodeFailures& law) const { return law.rate_per_node_day * nodes_; }
  double operator()(const WeibullClusterFailures& law) const { return law.rate_per_node_day * nodes_; }
  double operator()(const BurstFailures& law) const {
    return law.rate_per_node_day * nodes_ + law.bursts_per_day.value_or(0) * law.domain_nodes;
  }
  double operator()(const TraceReplay& law) const {
    const bool counts = law.trace.form == TraceForm::kCounts;
    if (!law.repeat || (counts ? law.trace.counts.empty() : law.trace.rows.empty())) return 0;
    const Duration length = counts ? law.trace.counts.back().time : law.trace.rows.back().time;
    const auto rows = static_cast<double>(counts ? law.trace.counts.size() : law.trace.rows.size());
    return rows * kSecondsPerDay / (to_seconds(length) * law.scale);
  }
  double operator()(const HourlySpot&) const { return 24.0 * nodes_; }
  double operator()(const FailSlow& law) const {
    return nodes_ *
           (law.rate_per_node_day.value_or(0) + law.share * kSecondsPerDay / to_seconds(law.shortest));
  }
  double operator()(const SilentCorruption& law) const { return law.rate_per_node_day * nodes_; }
  double operator()(const Maintenance& law) const { return kSecondsPerDay / to_seconds(law.period); }

 private:
  int nodes_;
};

}  // namespace

double lemon_factor(const FailureLaw& law) {
  const auto factor = [](const auto& any) {
    if constexpr (requires { any.lemon_factor; }) return any.lemon_factor;
    return 1.0;
  };
  return std::visit(factor, law);
}

double effective_rate(const ExponentialFailures& law, int nodes) {
  SC_CHECK(law.reference_nodes >= 1, "a rate was measured on nodes");
  if (law.exponent == 0) return law.rate_per_node_day;
  return law.rate_per_node_day * std::pow(static_cast<double>(nodes) / law.reference_nodes, law.exponent);
}

std::unique_ptr<Process> make_process(const FailureSpec& spec, int number, Fleet& fleet) {
  return std::visit(Maker(spec, number, fleet), spec.processes[as_index(number)].law);
}

double most_incidents_per_day(const FailureLaw& law, int nodes) {
  return std::visit(IncidentsPerDay(nodes), law);
}

bool breaks_nodes(const FailureLaw& law) {
  return std::visit([](const auto& any) { return any.kBreaksNodes; }, law);
}

bool is_announced(const FailureLaw& law) {
  const auto* maintenance = std::get_if<Maintenance>(&law);
  return maintenance != nullptr && maintenance->notice > Duration(0);
}

bool says_who_is_there(const FailureLaw& law) {
  const auto* trace = std::get_if<TraceReplay>(&law);
  return std::holds_alternative<HourlySpot>(law) ||
         (trace != nullptr && trace->trace.form != TraceForm::kFaults);
}

}  // namespace stagecraft
