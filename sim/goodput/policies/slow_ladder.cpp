#include "sim/goodput/policies/slow_ladder.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// Micro-batches that fit into `time` micro-batches of a fast replica.
std::int64_t fit(const std::map<double, std::int64_t>& replicas, double time) {
  std::int64_t sum = 0;
  for (const auto& [factor, count] : replicas)
    sum += count * static_cast<std::int64_t>(std::floor(time / factor + 1e-9));
  return sum;
}

// Slowdown of each replica with a slow node: that of its slowest node. replica_nodes = 0: all places are one
// replica.
std::vector<double> as_given(const std::vector<SlowPlace>& slow, int replica_nodes) {
  std::map<int, double> by_replica;
  for (const SlowPlace& at : slow) {
    double& pace = by_replica[replica_nodes > 0 ? at.place / replica_nodes : 0];
    pace = std::max({pace, at.compute, at.traffic});
  }
  std::vector<double> paces;
  for (const auto& [replica, pace] : by_replica) paces.push_back(pace);
  return paces;
}

}  // namespace

// The least time is a whole number of micro-batches of some replica.
double rebalanced_pace(const std::vector<double>& slow, int replicas, std::int64_t micro_batches) {
  const auto fast = replicas - static_cast<std::int64_t>(slow.size());
  SC_CHECK(fast >= 0 && replicas >= 1 && micro_batches >= 1, "no more replicas are slow than there are");
  std::map<double, std::int64_t> by_factor;
  if (fast > 0) by_factor[1] = fast;
  double slowest = 1;
  for (const double factor : slow) {
    ++by_factor[factor];
    slowest = std::max(slowest, factor);
  }
  double least = slowest * static_cast<double>(micro_batches);  // step without rebalancing
  const std::int64_t all = replicas * micro_batches;
  for (const auto& [factor, count] : by_factor) {
    std::int64_t low = 0, high = static_cast<std::int64_t>(least / factor) + 1;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (fit(by_factor, factor * static_cast<double>(middle)) >= all ? high : low) = middle;
    }
    if (fit(by_factor, factor * static_cast<double>(high)) >= all)
      least = std::min(least, factor * static_cast<double>(high));
  }
  return least / static_cast<double>(micro_batches);
}

std::vector<int> noticed(const SlowLadder& ladder, const Seats& seats, const Machines& machines) {
  std::vector<int> nodes;
  for (const int node : machines.slow())
    if (seats.has(node) && machines.factor(node) >= ladder.notice) nodes.push_back(node);
  return nodes;
}

double pace_of(const SlowLadder& ladder, const Seats& seats, const Machines& machines,
               const std::vector<int>& without) {
  const std::vector<SlowPlace> slow = slow_places(machines, [&](int node) {
    return std::find(without.begin(), without.end(), node) == without.end() ? seats.place_of(node) : -1;
  });
  if (slow.empty()) return 1;
  const auto places = static_cast<int>(seats.nodes().size());
  const std::vector<double> paces =
      ladder.slow_replicas ? ladder.slow_replicas(places, slow) : as_given(slow, ladder.replica_nodes);
  // Slowness below the notice threshold has no reaction.
  if (ladder.replica_nodes == 0 || slowest_factor(slow) < ladder.notice) return std::ranges::max(paces);
  const int replicas = std::max(static_cast<int>(paces.size()), places / ladder.replica_nodes);
  return rebalanced_pace(paces, replicas, ladder.micro_batches);
}

bool pays(Duration lasting, double pace, double pace_after, Duration cost) {
  return (1 - pace_after / pace) * to_seconds(lasting) > to_seconds(cost);
}

}  // namespace stagecraft
