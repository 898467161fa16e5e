// Placement of ranks: the parallel axes laid over the GPUs in a given order, innermost first.
//
//   rank = sum over axes of coordinate * stride; the innermost axis has stride 1. Rank r runs on GPU r.
//   Experts are carved out of other axes, so that layers with experts have a mesh of their own (data degree
//   d/e, expert degree e) beside the mesh of the other layers (expert degree 1): two meshes over the same
//   ranks. source  Megatron-LM's default order tensor, context, expert, data, pipeline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "topology/cluster.hpp"

namespace stagecraft {

enum class Axis : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
inline constexpr std::string_view kAxisNames[] = {"tensor", "context", "expert", "data", "pipeline"};
inline constexpr std::size_t kAxisCount = 5;

// Seconds for which all groups of a kind together keep the uplinks of a leaf busy, for each byte that a group
// hands on in a ring, and for each byte of S of the other algorithms. 0: no uplink is slower than the nodes
// below it.
struct UplinkLoad {
  double ring = 0, tree = 0, pat = 0, direct = 0;

  friend bool operator==(const UplinkLoad&, const UplinkLoad&) = default;
};

// Placement of a communication group on the nodes. An even group has the same number of ranks on each node.
// For an uneven group the fullest node determines the load of NVLinks, and the emptiest, with the fewest NICs
// for the group, the traffic out of a node.
struct GroupPlacement {
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;   // ranks on the fullest node
  int groups_per_node = 1;  // groups of the same axis that share a node, hence its NICs
  int least_ranks_per_node = ranks_per_node;
  int groups_per_rank = 1;  // groups that share the NIC of one rank: rails of an uneven group do
  UplinkLoad uplinks{};     // of the busiest leaf on the way (uplink_table.hpp)

  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};

class RankMesh {
 public:
  // `degree[axis]` ranks along each axis, `order` innermost first.
  // throws InternalError when a degree is below 1 or `order` is no permutation of the axes; the plan rejects
  // these first.
  RankMesh(std::array<int, kAxisCount> degree, std::array<Axis, kAxisCount> order);

  [[nodiscard]] int size() const;
  [[nodiscard]] int degree(Axis axis) const { return degree_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] int stride(Axis axis) const { return stride_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] int coordinate(int rank, Axis axis) const { return rank / stride(axis) % degree(axis); }
  [[nodiscard]] int rank_at(const std::array<int, kAxisCount>& coordinates) const;

  // Ranks that differ from `rank` only along the given axes, ascending. Several axes make one joint group:
  // gradients are reduced over data and context together.
  [[nodiscard]] std::vector<int> group(int rank, std::initializer_list<Axis> axes) const;
  [[nodiscard]] std::vector<int> group(int rank, Axis axis) const { return group(rank, {axis}); }

  // Placement of that group. groups_per_node is counted on its fullest node, of several kinds of nodes on that
  // of `rank`; where the group leaves it, without those groups that do not, for they send nothing over its
  // NICs. GPUs beyond the mesh are idle. Cost: one pass over the group and one over a node, over all of its
  // nodes where they are not filled alike.
  [[nodiscard]] GroupPlacement placement(const Cluster& cluster, int rank,
                                         std::initializer_list<Axis> axes) const;
  [[nodiscard]] GroupPlacement placement(const Cluster& cluster, int rank, Axis axis) const {
    return placement(cluster, rank, {axis});
  }

  // Parts of a joint group under hybrid sharding. The group's ranks in ascending order form consecutive
  // blocks of `block` ranks, each of which shares one sharded copy. The ranks at one position of every block
  // hold the same shard, as replicas of each other.
  //   source  Zhao et al. (arXiv 2304.11277), section 3.2.2: sharding groups of F ranks, W/F replicas.
  // Both ascending and with `rank` in it. throws InternalError unless `block` divides the group. Cost: that
  // of what is returned, however large the group.
  [[nodiscard]] std::vector<int> block_of(int rank, std::initializer_list<Axis> axes, int block) const;
  [[nodiscard]] std::vector<int> across_blocks(int rank, std::initializer_list<Axis> axes, int block) const;

  // Placements of these parts, by the rules of placement(); groups_per_node counts parts of the same kind.
  [[nodiscard]] GroupPlacement block_placement(const Cluster& cluster, int rank,
                                               std::initializer_list<Axis> axes, int block) const;
  [[nodiscard]] GroupPlacement across_blocks_placement(const Cluster& cluster, int rank,
                                                       std::initializer_list<Axis> axes, int block) const;

 private:
  // Do all nodes of so many GPUs hold the same part of every axis?
  [[nodiscard]] bool fills_nodes_alike(int gpus) const;
  [[nodiscard]] int first_of_group(int rank, std::initializer_list<Axis> axes) const;
  // Ranks of a group before the first that has another coordinate on `axis`.
  [[nodiscard]] int ranks_below(Axis axis, std::initializer_list<Axis> axes) const;
  // Index of `rank` in its group, and back.
  [[nodiscard]] int position(int rank, std::initializer_list<Axis> axes) const;
  [[nodiscard]] int rank_of_position(int first, std::initializer_list<Axis> axes, int position) const;
  [[nodiscard]] int group_size(int rank, std::initializer_list<Axis> axes) const;
  // Placement of `members`, ascending; two ranks of the mesh are in one group where `group_key` is the same.
  template <class GroupKey>
  [[nodiscard]] GroupPlacement place(const Cluster& cluster, int rank, const std::vector<int>& members,
                                     GroupKey group_key) const;

  std::array<int, kAxisCount> degree_;
  std::array<int, kAxisCount> stride_{};
};

}  // namespace stagecraft
