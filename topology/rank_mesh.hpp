// Which rank sits where: the parallel axes laid over the GPUs in a stated order, innermost first.
//
//   rank = sum over axes of coordinate * stride; the innermost axis has stride 1. Rank r runs on GPU r.
//   source  Megatron-LM's default order tensor, context, expert, data, pipeline.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "topology/cluster.hpp"

namespace stagecraft {

enum class Axis : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
inline constexpr std::string_view kAxisNames[] = {"tensor", "context", "expert", "data", "pipeline"};
inline constexpr std::size_t kAxisCount = 5;

// How the ranks of a communication group lie on the nodes. Regular groups only: every node has the same number of members.
struct GroupPlacement {
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;
  int groups_per_node = 1;   // groups of the same axis that share a node, hence its NICs

  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};

class RankMesh {
 public:
  // `degree[axis]` ranks along each axis, `order` innermost first; the expert axis is carved out of data (degree 1 here).
  RankMesh(std::array<int, kAxisCount> degree, std::array<Axis, kAxisCount> order);

  [[nodiscard]] int size() const;
  [[nodiscard]] int degree(Axis axis) const { return degree_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] int stride(Axis axis) const;
  [[nodiscard]] int coordinate(int rank, Axis axis) const;
  [[nodiscard]] int rank_at(const std::array<int, kAxisCount>& coordinates) const;
  [[nodiscard]] std::vector<int> group(int rank, Axis axis) const;  // ranks along `axis` through `rank`, ascending

  // Placement of the group of `axis` through `rank`. Irregular groups count their fullest node as ranks_per_node.
  [[nodiscard]] GroupPlacement placement(const Cluster& cluster, int rank, Axis axis) const;

 private:
  std::array<int, kAxisCount> degree_;
  std::array<Axis, kAxisCount> order_;
};

}  // namespace stagecraft
