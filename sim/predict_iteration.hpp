// Time and memory of an iteration, without a report: simulate() for thousands of plans.
//
// The figures equal those of simulate(), bit for bit (a property test). Shared parts of plans are computed
// once: the cluster's graph, the orders of passes, placements of groups, prices of messages, and task graphs
// that differ only in their times. The task graph is swept once instead of running event by event; without
// shared links both give the same times (sim/engine/graph_sweep.hpp). Scenarios outside these shortcuts
// (shared links, faults, other jobs, orders from files, several iterations) use simulate() itself.
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
  Bytes peak;      // peak of the heaviest pipeline rank; if that is too much, of the first rank with too much
  Bytes capacity;  // 0: not given
  int rank = 0;    // this rank
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
  // The prices of an iteration without pass memory, which memory() computes.
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
  std::optional<Schedule> measured_;  // order of a cost-based kind, for the last scenario
};

// Is all that the scenario says known to the shortcuts?
[[nodiscard]] bool predicts_directly(const Scenario& scenario);

}  // namespace stagecraft
