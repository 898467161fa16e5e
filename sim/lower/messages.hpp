// Prices of what crosses a wire: messages between stages and collectives of groups of ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/operators.hpp"
#include "sim/lower/host_time.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster.hpp"
#include "topology/collective.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

struct PlacementMemo;
class CollectiveMemo;

struct Network {
  const Cluster& cluster;
  const HardwareProfile& profile;
  const ParallelPlan& plan;
  PatternTable* patterns = nullptr;  // where links are shared: filled in by what is priced
  PlacementMemo* memo = nullptr;     // not where links are shared
  CollectiveMemo* collectives = nullptr;
  Sourced<Duration> exchange_overhead{};           // of a pipeline message that its sender waits for
  Sourced<Duration> tensor_collective_overhead{};  // of a tensor-parallel all-reduce, as OptionsSpec says
  HostCosts host{};
  double slowest_gpu = 0;  // how much longer than the mean one it computes: HardwareProfile::slowest_of()
};

// Where the job of the request runs. `patterns` are filled in where it asks for shared links.
[[nodiscard]] Network network_of(const Cluster& cluster, const HardwareProfile& profile,
                                 const PricingRequest& request, PatternTable* patterns = nullptr);

inline constexpr std::size_t kCommGroupCount = 4;

struct CollectiveJob {
  CollectiveKind kind;
  Bytes size;  // nccl-tests' convention
  Category category;
  Duration beside{};  // of its ranks, beside what the network takes
};

// The first GPU of a pipeline rank: tensor and data coordinate 0.
[[nodiscard]] int pipeline_member(const ParallelPlan& plan, int pipeline_rank);

// All GPUs of a pipeline rank, ascending.
[[nodiscard]] std::vector<int> pipeline_members(const ParallelPlan& plan, int pipeline_rank);

// GPUs of the node of `member` that belong to the same pipeline rank: they send, and reduce, at the same
// time.
[[nodiscard]] int same_stage_on_node(const Cluster& cluster, const ParallelPlan& plan, int member);

// Who communicates with whom, by what they share. Experts have groups of their own, on the plan's expert
// mesh.
enum class RankGroup : std::uint8_t {
  kTensor,
  kContext,
  kPipeline,
  kReplicas,       // data x context: ranks with the same dense weights
  kShards,         // of the replicas: those that share one sharded copy
  kShardReplicas,  // of the replicas: those that hold the same shard of their copies
  kExpert,
  kExpertTensor,
  kExpertReplicas,  // ranks with the same routed experts
  kExpertShards,
  kExpertShardReplicas,
  kExpertRails,   // of the expert group: those at the same place of each node
  kExpertInNode,  // of the expert group: those on one node
};

// What of the ranks along some axes is a group.
enum class GroupCut : std::uint8_t {
  kNone,          // all
  kBlock,         // those that share one sharded copy
  kAcrossBlocks,  // those at one position of every block
  kRails,         // those at one position of every node
  kInNode,        // those of a node
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

// How the group of `member` lies on the nodes.
[[nodiscard]] GroupPlacement placement_of(const Network& network, int member, RankGroup group);

// The parts of a group over nodes: one rank of each node (as many of these groups as the fullest node has
// ranks; on an emptier one several share a rank and its NIC, each with as many bytes as if the nodes held
// alike, which is too many for the few experts there), and those of the fullest node.
[[nodiscard]] GroupPlacement rails_of(const GroupPlacement& whole);
[[nodiscard]] GroupPlacement in_node_of(const GroupPlacement& whole);

// A group of ranks, as one of its GPUs sees it.
struct PlacedGroup {
  int member = 0;
  GroupPlacement placement;
  RankGroup group = RankGroup::kTensor;
};

// The groups that a pipeline rank takes part in, one of each way to lie on the nodes. One in regular layouts;
// tensor 3 on nodes of 8 GPUs has groups within a node and groups over two.
[[nodiscard]] std::vector<PlacedGroup> groups_of(const Network& network, int pipeline_rank, RankGroup group);

// Do the two groups take the same time for every job?
[[nodiscard]] bool alike(const Cluster& cluster, const PlacedGroup& a, const PlacedGroup& b);

// The groups that the layers of a GPU communicate over, by CommGroup.
struct LayerGroups {
  int member = 0;
  std::array<GroupPlacement, kCommGroupCount> placement;

  [[nodiscard]] const GroupPlacement& of(CommGroup group) const {
    return placement[static_cast<std::size_t>(group)];
  }
};

// Where groups lie and what messages take, for plans that lay the same degrees in the same order over the
// same cluster: found once, which for thousands of GPUs is most of what a price costs.
struct PlacementMemo {
  std::map<std::pair<int, RankGroup>, std::vector<PlacedGroup>> groups;  // by pipeline rank
  std::map<int, std::vector<LayerGroups>> layers;                        // by pipeline rank
  std::map<std::tuple<int, int, Bytes>, EdgePrice> messages;             // from rank to rank
};

// What collectives take, for plans on one cluster with one profile: groups that lie alike on nodes alike take
// the same time for the same bytes, and thousands of plans ask the same.
class CollectiveMemo {
 public:
  // collective_cost().
  [[nodiscard]] const CollectiveCost& cost(const Cluster& cluster, const HardwareProfile& profile,
                                           const PlacedGroup& group, const CollectiveJob& job);

 private:
  struct Question {
    const NodeSpec* node = nullptr;
    GroupPlacement placement;
    CollectiveKind kind{};
    Bytes size;
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Hash {
    std::size_t operator()(const Question& question) const;
  };
  std::unordered_map<Question, CollectiveCost, Hash> known_;
};

// collective_cost() of the network, remembered where it has a memo.
[[nodiscard]] CollectiveCost network_cost(const Network& network, const PlacedGroup& group,
                                          const CollectiveJob& job);

// What the job takes in the slowest of the groups: the others meet it at the next barrier.
//   requires  one group at least.
[[nodiscard]] PassPrice group_price(const Network& network, const std::vector<PlacedGroup>& groups,
                                    const CollectiveJob& job);

// Message of `size` bytes per GPU over the boundary from a stage to the next of its copy, both ways; of the
// slowest pair of GPUs.
[[nodiscard]] EdgePrice edge_price(const Network& network, HeldStage from, Bytes size);

// The price of a message from one pipeline rank to another.
[[nodiscard]] EdgePrice rank_message(const Network& network, int from, int to, Bytes size);

// An all-reduce of every GPU of a pipeline rank with its counterpart on another; the slowest pair counts.
// requires two different ranks.
[[nodiscard]] PassPrice pair_price(const Network& network, int rank, int other, Bytes size);

}  // namespace stagecraft
