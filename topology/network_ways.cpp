#include "topology/network_ways.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/check.hpp"
#include "topology/in_node_curve.hpp"
#include "topology/nccl_model.hpp"

namespace stagecraft {
namespace {

// On two nodes the bus of NCCL's shares is the one inside them.
constexpr double kPatShare = kNcclPatShare / 2;  // as in NCCL's estimate

// An algorithm between nodes.
struct Recipe {
  std::string_view algorithm;
  double bytes = 0;  // out of a node for one group
  double steps = 0;
  double share = 1;  // factor on the links' usual efficiency
  // Steps that a chunk waits for whole. A ring has none: its bytes are those of every step.
  double passed_on = 0;
};

double bytes_of(const CollectiveRequest& r) {
  return static_cast<double>(r.size.count());
}

double ceil_log2(int nodes) {
  return std::bit_width(static_cast<unsigned>(nodes - 1));
}

// S that the busiest node of the double tree sends: a pair only up and only down; of three the middle of a
// chain; beyond, a node with two children that is a leaf of the other tree.
double tree_volume(int nodes) {
  if (nodes == 2) return 1;
  return nodes == 3 ? 1.5 : 2;
}

std::vector<Recipe> all_reduces(const CollectiveRequest& r) {
  const GroupPlacement& group = r.group;
  const double trees = tree_volume(group.nodes) * bytes_of(r), depth = 2 * ceil_log2(group.nodes);
  // NCCL's estimate has no ring before NVLSTree from 1 MiB on, and smaller ones go down the tree.
  std::vector<Recipe> recipes;
  if (serves_nvls(r.profile, r.cluster.node_spec_of(r.member), group.least_ranks_per_node))
    recipes.push_back({"nvls-tree", trees, depth, 1, depth - 1});
  else
    recipes.push_back({"ring", bus_factor(r.kind, group.ranks) * bytes_of(r), 2.0 * (group.nodes - 1)});
  recipes.push_back({"tree", trees, depth, group.nodes > 2 ? kNcclTreeShare : 1, depth - 1});
  if (r.cluster.spec().fabric.sharp) recipes.push_back({"collnet", bytes_of(r), 2});
  return recipes;
}

std::vector<Recipe> gathers(const CollectiveRequest& r) {
  const GroupPlacement& group = r.group;
  const double bytes = bus_factor(r.kind, group.ranks) * bytes_of(r);
  std::vector<Recipe> recipes = {{"ring", bytes, group.nodes - 1.0}};
  // Its latency in NCCL's estimate, log2(N)*14/3.5 + 2.8*n us, in steps of 14 us.
  if (group.ranks_per_node == 1)
    recipes.push_back({"pat", bytes, std::log2(group.nodes) / 3.5 + group.ranks / 5.0, kPatShare});
  return recipes;
}

// Every rank sends by its own NIC, and the fewer are with it on its node, the more. The bytes that cross the
// spine are counted as often as its uplinks are oversubscribed.
Recipe all_to_all(const CollectiveRequest& r) {
  const GroupPlacement& group = r.group;
  const FabricSpec& fabric = r.cluster.spec().fabric;
  const auto out_of = [&](std::int64_t together) {
    const auto others = static_cast<double>(std::max<std::int64_t>(0, group.ranks - together));
    return group.least_ranks_per_node * bytes_of(r) * others / group.ranks;
  };
  double bytes = out_of(group.least_ranks_per_node);
  if (fabric.kind != FabricKind::kSingleSwitch) {
    const std::int64_t below_leaf = std::int64_t{group.ranks} * fabric.nodes_per_leaf / group.nodes;
    bytes = std::max(bytes, fabric.oversubscription * out_of(below_leaf));
  }
  return {"direct", bytes, group.nodes - 1.0};
}

std::vector<Recipe> recipes(const CollectiveRequest& request) {
  switch (request.kind) {
    case CollectiveKind::kAllReduce:
      return all_reduces(request);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return gathers(request);
    case CollectiveKind::kAllToAll:
      return {all_to_all(request)};
    case CollectiveKind::kBroadcast:
      return {{"ring", bytes_of(request), request.group.nodes - 1.0}};
    case CollectiveKind::kSendReceive:
      return {{"direct", bytes_of(request), 0}};
  }
  SC_CHECK(false, "every kind of collective is listed");
  return {};
}

// Bytes per second that the group gets out of its emptiest node. Senders of all groups share the node's
// links; each sends through its own NIC and has an equal part. There are at most `ranks_per_node` senders per
// group, and never more than GPUs. Where all GPUs send, the NIC that serves most of them decides.
double raw_network(const CollectiveRequest& r) {
  const GroupPlacement& group = r.group;
  const bool one_sender = r.kind == CollectiveKind::kSendReceive;
  const int gpus = r.cluster.gpus_in(r.cluster.node_of(r.member));
  const int senders = std::min(group.groups_per_node * (one_sender ? 1 : group.ranks_per_node), gpus);
  const double all = std::min(r.cluster.node_network(r.member, senders).count(),
                              senders * r.cluster.gpu_network(r.member).count());
  const double parts = one_sender ? senders : static_cast<double>(senders) / group.least_ranks_per_node;
  return all / (parts * group.groups_per_rank);
}

double efficiency_of(const CollectiveRequest& r) {
  const FabricSpec& fabric = r.cluster.spec().fabric;
  if (r.kind == CollectiveKind::kSendReceive) return fabric.point_to_point_efficiency;
  if (r.group.ranks_per_node == 1) return fabric.rail_efficiency.value_or(fabric.collective_efficiency);
  if (r.group.groups_per_node > 1) return fabric.crossing_efficiency.value_or(fabric.collective_efficiency);
  return fabric.collective_efficiency;
}

double latency(const FabricSpec& fabric, CollectiveKind kind, double steps) {
  if (kind == CollectiveKind::kSendReceive) return to_seconds(fabric.point_to_point_latency);
  return to_seconds(fabric.collective_latency) + steps * to_seconds(fabric.step_latency);
}

}  // namespace

std::vector<NetworkWay> network_ways(const CollectiveRequest& request) {
  const FabricSpec& fabric = request.cluster.spec().fabric;
  const double efficiency = efficiency_of(request);
  const double rate = raw_network(request);
  SC_CHECK(rate > 0, "a group over nodes has a network");
  const double chunk = static_cast<double>(std::min(request.size, fabric.chunk).count());
  std::vector<NetworkWay> ways;
  for (const Recipe& recipe : recipes(request))
    ways.push_back({.algorithm = recipe.algorithm,
                    .latency = latency(fabric, request.kind, recipe.steps),
                    .chunking = fabric.chunking * recipe.steps * to_seconds(fabric.step_latency),
                    .filling = recipe.passed_on * chunk / (rate * efficiency * recipe.share),
                    .bytes = recipe.bytes / (rate * efficiency * recipe.share),
                    .efficiency = efficiency * recipe.share});
  return ways;
}

}  // namespace stagecraft
