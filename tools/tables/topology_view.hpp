// Views of a cluster: the parts of a node, the fabric by levels, the links between a plan's neighbours, and
// the graph for Graphviz.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// Pairs of neighbours of one parallel axis: each rank and the next one of its group, the last and the first.
struct AxisClass {
  std::string axis;       // "tensor"
  int degree = 1;         // ranks of a group
  std::string name;       // "same NVLink domain", as pair_classes() names them
  double share = 0;       // of the axis' pairs
  Bandwidth bandwidth{};  // of one such pair on an idle network
  int switches = 0;
};
struct AxisClasses {
  std::vector<AxisClass> classes;  // by axis, nearest first
  bool sampled = false;            // evenly spaced ranks stand for all
};
// `job`: what the plan has of `whole`, which is all of it unless it is placed.
[[nodiscard]] AxisClasses axis_classes(const Cluster& whole, const Cluster& job, const ParallelPlan& plan);

// A link that the cluster says is slower than its rule, or missing.
struct DegradedLink {
  std::string name;
  Bandwidth capacity{};  // 0 = missing
  Bandwidth usual{};
};
struct ClusterHealth {
  std::optional<std::pair<DeviceId, DeviceId>> unreachable;  // two GPUs between which there is no way
  std::vector<DegradedLink> degraded;
};
[[nodiscard]] ClusterHealth health_of(const Cluster& cluster);

// A cluster in which every GPU reaches every other, as it is shown.
struct TopologyView {
  const Scenario& scenario;
  const Cluster& cluster;
  const Cluster& job;        // what the job has of it: all, or the part where it is placed
  const ParallelPlan* plan;  // nullptr where the job has none on it
};
[[nodiscard]] std::string render_topology_text(const TopologyView& view, bool color);
[[nodiscard]] std::string render_topology_json(const TopologyView& view);
// DOT. Nodes that hang on the same switches are one box, unless `full`: then every vertex is one.
[[nodiscard]] std::string render_topology_dot(const Cluster& cluster, bool full);

}  // namespace stagecraft
