#include "sim/lower/rank_groups.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {
namespace {

// Static: shapes refer to them.
constexpr std::initializer_list<Axis> kTensorAxis = {Axis::kTensor}, kContextAxis = {Axis::kContext},
                                      kPipelineAxis = {Axis::kPipeline}, kExpertAxis = {Axis::kExpert},
                                      kDataAxis = {Axis::kData}, kReplicaAxes = {Axis::kContext, Axis::kData};

int node_of(const Network& network, int rank) {
  return network.cluster.node_of(device_of(rank));
}

// The ranks of the group of `member` that share its node.
std::vector<int> in_node(const Network& network, int member, GroupShape whole) {
  std::vector<int> ranks = whole.mesh(network.plan).group(member, whole.axes);
  std::erase_if(ranks, [&](int rank) { return node_of(network, rank) != node_of(network, member); });
  return ranks;
}

// One rank per node, at the same position as `member` on its own node. Positions wrap around on nodes with
// fewer ranks of the group.
std::vector<int> on_rail(const Network& network, int member, GroupShape whole) {
  const std::vector<int> mine = in_node(network, member, whole);
  const auto place = static_cast<std::size_t>(std::ranges::find(mine, member) - mine.begin());
  std::vector<int> rail;
  int last_node = -1;
  for (const int rank : whole.mesh(network.plan).group(member, whole.axes)) {
    if (node_of(network, rank) == std::exchange(last_node, node_of(network, rank))) continue;
    const std::vector<int> there = in_node(network, rank, whole);
    rail.push_back(there[place % there.size()]);
  }
  return rail;
}

}  // namespace

int pipeline_member(const ParallelPlan& plan, int pipeline_rank) {
  std::array<int, kAxisCount> at{};
  at[static_cast<std::size_t>(Axis::kPipeline)] = pipeline_rank;
  return plan.mesh.rank_at(at);
}

int same_stage_on_node(const Cluster& cluster, const ParallelPlan& plan, int member) {
  const int node = cluster.node_of(device_of(member));
  const int stage = plan.mesh.coordinate(member, Axis::kPipeline);
  // A node's GPUs have neighbouring numbers: walk out from the member in both directions.
  int count = 0;
  const auto alike = [&](int rank) { return plan.mesh.coordinate(rank, Axis::kPipeline) == stage; };
  const auto here = [&](int rank) {
    return rank >= 0 && rank < plan.gpus() && cluster.node_of(device_of(rank)) == node;
  };
  for (int rank = member; here(rank); ++rank) count += alike(rank) ? 1 : 0;
  for (int rank = member - 1; here(rank); --rank) count += alike(rank) ? 1 : 0;
  return count;
}

std::vector<int> pipeline_members(const ParallelPlan& plan, int pipeline_rank) {
  return plan.mesh.group(pipeline_member(plan, pipeline_rank),
                         {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData});
}

GroupPlacement rails_of(const GroupPlacement& whole) {
  const int least = whole.least_ranks_per_node;
  return {.ranks = whole.nodes,
          .nodes = whole.nodes,
          .ranks_per_node = 1,
          .groups_per_node = whole.groups_per_node * least,
          .groups_per_rank = ceil_div(whole.ranks_per_node, least),
          .uplinks = whole.uplinks};
}

GroupPlacement in_node_of(const GroupPlacement& whole) {
  return {.ranks = whole.ranks_per_node,
          .nodes = 1,
          .ranks_per_node = whole.ranks_per_node,
          .groups_per_node = whole.groups_per_node};
}

GroupShape shape_of(RankGroup group) {
  switch (group) {
    case RankGroup::kTensor:
      return {.axes = kTensorAxis};
    case RankGroup::kContext:
      return {.axes = kContextAxis};
    case RankGroup::kPipeline:
      return {.axes = kPipelineAxis};
    case RankGroup::kReplicas:
      return {.axes = kReplicaAxes};
    case RankGroup::kShards:
      return {.axes = kReplicaAxes, .cut = GroupCut::kBlock};
    case RankGroup::kShardReplicas:
      return {.axes = kReplicaAxes, .cut = GroupCut::kAcrossBlocks};
    case RankGroup::kExpert:
      return {.experts = true, .axes = kExpertAxis};
    case RankGroup::kExpertTensor:
      return {.experts = true, .axes = kTensorAxis};
    case RankGroup::kExpertReplicas:
      return {.experts = true, .axes = kDataAxis};
    case RankGroup::kExpertShards:
      return {.experts = true, .axes = kDataAxis, .cut = GroupCut::kBlock};
    case RankGroup::kExpertShardReplicas:
      return {.experts = true, .axes = kDataAxis, .cut = GroupCut::kAcrossBlocks};
    case RankGroup::kExpertRails:
      return {.experts = true, .axes = kExpertAxis, .cut = GroupCut::kRails};
    case RankGroup::kExpertInNode:
      return {.experts = true, .axes = kExpertAxis, .cut = GroupCut::kInNode};
  }
  SC_CHECK(false, "every group is listed");
  return {};
}

std::vector<int> group_members(const Network& network, int member, RankGroup group) {
  const GroupShape shape = shape_of(group);
  const RankMesh& mesh = shape.mesh(network.plan);
  switch (shape.cut) {
    case GroupCut::kNone:
      return mesh.group(member, shape.axes);
    case GroupCut::kBlock:
      return mesh.block_of(member, shape.axes, shape.block(network.plan));
    case GroupCut::kAcrossBlocks:
      return mesh.across_blocks(member, shape.axes, shape.block(network.plan));
    case GroupCut::kRails:
      return on_rail(network, member, shape);
    case GroupCut::kInNode:
      return in_node(network, member, shape);
  }
  SC_CHECK(false, "every cut is listed");
  return {};
}

std::vector<DeviceId> devices_of(const std::vector<int>& ranks) {
  std::vector<DeviceId> ids;
  ids.reserve(ranks.size());
  for (const int rank : ranks) ids.push_back(device_of(rank));
  return ids;
}

std::vector<std::vector<int>> all_groups(const Network& network, const std::vector<int>& ranks,
                                         RankGroup group) {
  std::vector<bool> placed(static_cast<std::size_t>(network.plan.gpus()));
  std::vector<std::vector<int>> groups;
  for (const int member : ranks) {
    if (placed[static_cast<std::size_t>(member)]) continue;
    groups.push_back(group_members(network, member, group));
    for (const int other : groups.back()) placed[static_cast<std::size_t>(other)] = true;
  }
  return groups;
}

GroupPlacement placement_of(const Network& network, int member, RankGroup group) {
  const GroupShape shape = shape_of(group);
  const RankMesh& mesh = shape.mesh(network.plan);
  const Cluster& cluster = network.cluster;
  switch (shape.cut) {
    case GroupCut::kNone:
      return mesh.placement(cluster, member, shape.axes);
    case GroupCut::kBlock:
      return mesh.block_placement(cluster, member, shape.axes, shape.block(network.plan));
    case GroupCut::kAcrossBlocks:
      return mesh.across_blocks_placement(cluster, member, shape.axes, shape.block(network.plan));
    case GroupCut::kRails:
      return rails_of(mesh.placement(cluster, member, shape.axes));
    case GroupCut::kInNode:
      return in_node_of(mesh.placement(cluster, member, shape.axes));
  }
  SC_CHECK(false, "every cut is listed");
  return {};
}

UplinkLoad UplinkTables::of(const Network& network, int member, RankGroup group) {
  const FabricSpec& fabric = network.cluster.spec().fabric;
  if (network.patterns != nullptr || !fabric.has_leaves() || fabric.oversubscription <= 1) return {};
  // All rails together send what the whole groups would.
  const RankGroup kind = group == RankGroup::kExpertRails ? RankGroup::kExpert : group;
  const auto [at, is_new] = tables_.try_emplace(kind);
  if (is_new) {
    std::vector<int> ranks(static_cast<std::size_t>(network.plan.gpus()));
    std::iota(ranks.begin(), ranks.end(), 0);
    for (const std::vector<int>& members : all_groups(network, ranks, kind))
      at->second.add(network.cluster, devices_of(members));
  }
  return at->second.of(network.cluster, devices_of(group_members(network, member, kind)));
}

}  // namespace stagecraft
