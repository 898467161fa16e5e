// Groups of ranks that communicate, and their places on the nodes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "sim/lower/host_time.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster.hpp"
#include "topology/collective.hpp"
#include "topology/rank_mesh.hpp"
#include "topology/uplink_table.hpp"

namespace stagecraft {

// What a job runs on, and what beside its plan decides the prices there.
struct Network {
  const Cluster& cluster;
  const HardwareProfile& profile;
  const ParallelPlan& plan;
  PlacementMemo& memo;               // of this network, or of others that it serves as well
  PatternTable* patterns = nullptr;  // filled in by pricing, on shared links only
  // Filled in by pricing in closed form where a rank's own kinds of traffic meet on its links (own_links.hpp).
  PatternTable* own_links = nullptr;
  CollectiveMemo* collectives = nullptr;
  Sourced<Duration> exchange_overhead{};           // overhead of a pipeline message that its sender waits for
  Sourced<Duration> tensor_collective_overhead{};  // overhead of a tensor-parallel all-reduce (SoftwareRules)
  HostCosts host{};
  // Extra compute time of the slowest GPU over the mean: HardwareProfile::slowest_of().
  double slowest_gpu = 0;
};

// The first GPU of a pipeline rank: tensor and data coordinate 0.
[[nodiscard]] int pipeline_member(const ParallelPlan& plan, int pipeline_rank);

// All GPUs of a pipeline rank, ascending.
[[nodiscard]] std::vector<int> pipeline_members(const ParallelPlan& plan, int pipeline_rank);

// GPUs on the node of `member` that belong to the same pipeline rank: they send, and reduce, at the same
// time.
[[nodiscard]] int same_stage_on_node(const Cluster& cluster, const ParallelPlan& plan, int member);

// Groups of ranks that communicate. Groups of experts lie on the plan's expert mesh.
enum class RankGroup : std::uint8_t {
  kTensor,
  kContext,
  kPipeline,
  kReplicas,       // data x context: ranks with the same dense weights
  kShards,         // subset of the replicas that shares one sharded copy
  kShardReplicas,  // subset of the replicas that holds the same shard of each copy
  kExpert,
  kExpertTensor,
  kExpertReplicas,  // ranks with the same routed experts
  kExpertShards,
  kExpertShardReplicas,
  kExpertRails,   // ranks of the expert group at the same place of each node
  kExpertInNode,  // ranks of the expert group on one node
};

// Selects a part of the ranks along some axes.
enum class GroupCut : std::uint8_t {
  kNone,          // all
  kBlock,         // ranks that share one sharded copy
  kAcrossBlocks,  // ranks at one position of every block
  kRails,         // ranks at one position of every node
  kInNode,        // ranks of a node
};

struct GroupShape {
  bool experts = false;  // on the mesh of layers with experts
  std::initializer_list<Axis> axes = {};
  GroupCut cut = GroupCut::kNone;

  [[nodiscard]] const RankMesh& mesh(const ParallelPlan& plan) const {
    return experts ? plan.expert_mesh : plan.mesh;
  }
  [[nodiscard]] int block(const ParallelPlan& plan) const {
    return experts ? plan.expert_shard_group() : plan.shard_group;
  }
};
[[nodiscard]] GroupShape shape_of(RankGroup group);

// Placement of the group of `member` on the nodes.
[[nodiscard]] GroupPlacement placement_of(const Network& network, int member, RankGroup group);

// Ranks of the group of `member`, ascending but for those of a rail, which lie node by node.
[[nodiscard]] std::vector<int> group_members(const Network& network, int member, RankGroup group);

[[nodiscard]] std::vector<DeviceId> devices_of(const std::vector<int>& ranks);

// The groups of a kind that have some of these ranks, by the first of them.
[[nodiscard]] std::vector<std::vector<int>> all_groups(const Network& network, const std::vector<int>& ranks,
                                                       RankGroup group);

// What all groups of a kind in the job put on the uplinks of leaves at the same time; each kind is counted
// once. They count for placement_of(), whichever their pipeline rank, as its groups_per_node do.
class UplinkTables {
 public:
  // On the way of the group of `member`. Nothing where uplinks carry all that the nodes below them send, and
  // on shared links, whose flows compete for the uplinks themselves.
  [[nodiscard]] UplinkLoad of(const Network& network, int member, RankGroup group);

 private:
  std::map<RankGroup, UplinkTable> tables_;
};

// Splits a group over nodes into rails (one rank per node) and the ranks of the fullest node. There are as
// many rails as the fullest node has ranks. On an emptier node several rails share a rank and its NIC, each
// with as many bytes as if all nodes had equal ranks; that overestimates the traffic of the few experts
// there.
[[nodiscard]] GroupPlacement rails_of(const GroupPlacement& whole);
[[nodiscard]] GroupPlacement in_node_of(const GroupPlacement& whole);

}  // namespace stagecraft
