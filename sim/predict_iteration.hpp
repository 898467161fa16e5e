// How long an iteration takes and what it holds, without a report: simulate() for thousands of plans in a
// row.
//
// The figures are those of simulate(), bit for bit (a property test). What plans share is made once: the
// cluster's graph, the orders of passes, where groups lie and what messages take; and
// task graphs that differ in their times alone. The task graph is swept once in place of running event by
// event: where nothing shares links, both give the same times (sim/engine/graph_sweep.hpp). What a
// scenario takes that these shortcuts do not know (shared links, faults, other jobs, orders from files,
// several iterations) goes through simulate() itself.
//
//   One predictor serves one thread, and scenarios of one cluster: the cluster, and each profile, which is
//   known by its address, stay what they were at the first question.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "sim/iteration_graphs.hpp"
#include "sim/lower/messages.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// A plan that passed every check.
struct PlacedPlan {
  ParallelPlan plan;
  const Schedule* schedule = nullptr;  // lives as long as the predictor
};

struct HeldMemory {
  Bytes peak;      // of the heaviest pipeline rank; where that is too much, of the first that holds too much
  Bytes capacity;  // 0: not given
  int rank = 0;    // that one
  HostMemory host = {};

  [[nodiscard]] Verdict verdict() const { return std::max(verdict_of(peak, capacity), host.verdict()); }
  friend bool operator==(const HeldMemory&, const HeldMemory&) = default;
};

class IterationPredictor {
 public:
  explicit IterationPredictor(const ClusterSpec* cluster);

  // prepare(): nullopt after reporting why it cannot run. The answer is good until the next question.
  [[nodiscard]] std::optional<PlacedPlan> place(const Scenario& scenario, Diagnostics& diagnostics);
  [[nodiscard]] HeldMemory memory(const Scenario& scenario, const PlacedPlan& placed) const;
  // The prices of an iteration without what passes hold, which memory() tells.
  [[nodiscard]] IterationPrices prices(const Scenario& scenario, const PlacedPlan& placed);
  // The iteration time of the report, and never more than it: sim/iteration_bound.hpp.
  [[nodiscard]] Duration time(const Scenario& scenario, const PlacedPlan& placed,
                              const IterationPrices& prices);
  [[nodiscard]] Duration at_least(const Scenario& scenario, const PlacedPlan& placed,
                                  const IterationPrices& prices) const;

 private:
  // Sizes of an order: name, ranks, micro-batches, chunks, group.
  using OrderKey = std::tuple<std::string, int, int, int, int>;
  [[nodiscard]] const Schedule* order_of(const Scenario& scenario, const ParallelPlan& plan,
                                         Diagnostics& diagnostics);

  std::optional<Cluster> cluster_;
  std::map<OrderKey, Schedule> orders_;
  // The degrees of both meshes, the ranks that share a sharded copy, and the order of the axes.
  using MeshKey = std::pair<std::array<int, 8>, std::array<Axis, kAxisCount>>;
  std::map<MeshKey, PlacementMemo> placements_;
  std::map<const HardwareProfile*, CollectiveMemo> collectives_;
  IterationGraphs graphs_;
  std::optional<Schedule> measured_;  // of a kind that looks at the costs: of the last scenario
};

// Is all that the scenario says known to the shortcuts?
[[nodiscard]] bool predicts_directly(const Scenario& scenario);

}  // namespace stagecraft
