#include "tools/tables/topology_view.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "topology/cluster_links.hpp"
#include "topology/cluster_view.hpp"

namespace stagecraft {
namespace {

constexpr int kMostRanks = 4'096;  // looked at for each axis

// The next rank of the same group; the rank itself where there is none.
int neighbour(const RankMesh& mesh, int rank, Axis axis) {
  const int degree = mesh.degree(axis);
  const int stride = mesh.stride(axis);
  if (mesh.coordinate(rank, axis) + 1 < degree) return rank + stride;
  // A pipeline ends, and of two ranks each is the other's neighbour already.
  return axis == Axis::kPipeline || degree == 2 ? rank : rank - (degree - 1) * stride;
}

class AxisCount {
 public:
  AxisCount(const Cluster& whole, const Cluster& job) : cluster_(job), known_(pair_classes(whole).classes) {}

  void add_axis(const RankMesh& mesh, Axis axis, AxisClasses& found) {
    if (mesh.degree(axis) < 2) return;
    const int step = std::max(1, mesh.size() / kMostRanks);
    found.sampled = found.sampled || step > 1;
    std::map<std::pair<int, std::int64_t>, std::int64_t> pairs;  // by switches and MB/s
    std::int64_t all = 0;
    for (int rank = 0; rank < mesh.size(); rank += step) {
      const int next = neighbour(mesh, rank, axis);
      if (next == rank) continue;
      ++pairs[{cluster_.switches_between(device_of(rank), device_of(next)),
               megabytes(device_of(rank), device_of(next))}];
      ++all;
    }
    for (const auto& [key, count] : pairs)
      found.classes.push_back({.axis = std::string(kAxisNames[static_cast<std::size_t>(axis)]),
                               .degree = mesh.degree(axis),
                               .name = name_of(key.first, key.second),
                               .share = static_cast<double>(count) / static_cast<double>(all),
                               .bandwidth = Bandwidth(static_cast<double>(key.second) * 1e6),
                               .switches = key.first});
  }

 private:
  [[nodiscard]] std::int64_t megabytes(DeviceId a, DeviceId b) const {
    double rate = 0;
    for (const LinkShare& way : cluster_.spread(a, b)) {
      const double carries = cluster_.link(way.link).capacity.count() / way.share;
      rate = rate == 0 ? carries : std::min(rate, carries);
    }
    return std::llround(rate / 1e6);
  }

  [[nodiscard]] std::string name_of(int switches, std::int64_t rate) const {
    const PairClass* best = nullptr;
    for (const PairClass& pair : known_) {
      if (pair.switches != switches) continue;
      if (best == nullptr || std::llround(pair.bandwidth.count() / 1e6) == rate) best = &pair;
    }
    return best == nullptr ? "another way" : best->name;
  }

  const Cluster& cluster_;
  std::vector<PairClass> known_;
};

}  // namespace

AxisClasses axis_classes(const Cluster& whole, const Cluster& job, const ParallelPlan& plan) {
  AxisCount count(whole, job);
  AxisClasses found;
  for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kData, Axis::kPipeline})
    count.add_axis(plan.mesh, axis, found);
  if (plan.expert > 1) count.add_axis(plan.expert_mesh, Axis::kExpert, found);
  return found;
}

ClusterHealth health_of(const Cluster& cluster) {
  ClusterHealth health{.unreachable = cluster.unreachable(), .degraded = {}};
  const std::vector<LinkException>& exceptions = cluster.spec().links;
  if (exceptions.empty()) return health;
  ClusterSpec by_rule = cluster.spec();
  by_rule.links.clear();
  const Cluster whole(by_rule);  // with all links as they would be
  const LinkChoice choice = choose_links(whole.graph(), exceptions);
  for (std::uint32_t i = 0; i < whole.link_count(); ++i) {
    if (!choice.by_link[i]) continue;
    const LinkException& exception = exceptions[*choice.by_link[i]];
    const Bandwidth usual = whole.link(EdgeId(i)).capacity;
    Bandwidth now = exception.bandwidth.value_or(usual * exception.share);
    if (exception.missing) now = Bandwidth(0);
    if (now < usual)
      health.degraded.push_back({.name = whole.link_name(EdgeId(i)), .capacity = now, .usual = usual});
  }
  return health;
}

}  // namespace stagecraft
