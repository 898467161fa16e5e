#include "topology/network_ways.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

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
  double uplinks = 0;  // seconds that they take on the busiest leaf's uplinks at all of their rate
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

// Of an algorithm without trees.
Recipe flat(std::string_view algorithm, double bytes, double steps, double uplinks) {
  return {.algorithm = algorithm, .bytes = bytes, .steps = steps, .uplinks = uplinks};
}

Recipe tree(const CollectiveRequest& r, std::string_view algorithm, double share) {
  const double depth = 2 * ceil_log2(r.group.nodes);
  return {.algorithm = algorithm,
          .bytes = tree_volume(r.group.nodes) * bytes_of(r),
          .steps = depth,
          .share = share,
          .passed_on = depth - 1,
          .uplinks = bytes_of(r) * r.group.uplinks.tree};
}

std::vector<Recipe> all_reduces(const CollectiveRequest& r) {
  const GroupPlacement& group = r.group;
  // NCCL's estimate has no ring before NVLSTree from 1 MiB on, and smaller ones go down the tree.
  std::vector<Recipe> recipes;
  if (serves_nvls(r.profile, r.cluster.node_spec_of(r.member), group.least_ranks_per_node)) {
    recipes.push_back(tree(r, "nvls-tree", 1));
  } else {
    const double bytes = bus_factor(r.kind, group.ranks) * bytes_of(r);
    recipes.push_back(flat("ring", bytes, 2.0 * (group.nodes - 1), bytes * group.uplinks.ring));
  }
  recipes.push_back(tree(r, "tree", group.nodes > 2 ? kNcclTreeShare : 1));
  if (r.cluster.spec().fabric.sharp)
    recipes.push_back(flat("collnet", bytes_of(r), 2, bytes_of(r) * group.uplinks.ring));
  return recipes;
}

std::vector<Recipe> gathers(const CollectiveRequest& r) {
  const GroupPlacement& group = r.group;
  const double bytes = bus_factor(r.kind, group.ranks) * bytes_of(r);
  std::vector<Recipe> recipes = {flat("ring", bytes, group.nodes - 1.0, bytes * group.uplinks.ring)};
  // Its latency in NCCL's estimate, log2(N)*14/3.5 + 2.8*n us, in steps of 14 us.
  if (group.ranks_per_node == 1)
    recipes.push_back({.algorithm = "pat",
                       .bytes = bytes,
                       .steps = std::log2(group.nodes) / 3.5 + group.ranks / 5.0,
                       .share = kPatShare,
                       .uplinks = bytes_of(r) * group.uplinks.pat});
  return recipes;
}

// Every rank sends by its own NIC, and the fewer are with it on its node, the more.
Recipe all_to_all(const CollectiveRequest& r) {
  const GroupPlacement& group = r.group;
  const auto others = static_cast<double>(group.ranks - group.least_ranks_per_node);
  const double bytes = group.least_ranks_per_node * bytes_of(r) * others / group.ranks;
  return flat("direct", bytes, group.nodes - 1.0, bytes_of(r) * group.uplinks.direct);
}

std::vector<Recipe> recipes(const CollectiveRequest& request) {
  const double bytes = bytes_of(request), uplinks = bytes * request.group.uplinks.ring;
  switch (request.kind) {
    case CollectiveKind::kAllReduce:
      return all_reduces(request);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return gathers(request);
    case CollectiveKind::kAllToAll:
      return {all_to_all(request)};
    case CollectiveKind::kBroadcast:
      return {flat("ring", bytes, request.group.nodes - 1.0, uplinks)};
    case CollectiveKind::kSendReceive:
      return {flat("direct", bytes, 0, uplinks)};
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
                    .bytes = std::max(recipe.bytes / (rate * efficiency * recipe.share),
                                      recipe.uplinks / (efficiency * recipe.share)),
                    .efficiency = efficiency * recipe.share});
  return ways;
}

}  // namespace stagecraft
