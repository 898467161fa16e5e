#include "topology/rank_mesh.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {

RankMesh::RankMesh(std::array<int, kAxisCount> degree, std::array<Axis, kAxisCount> order) : degree_(degree) {
  int stride = 1;
  for (const Axis axis : order) {
    const auto i = static_cast<std::size_t>(axis);
    SC_CHECK(degree_.at(i) >= 1, "every axis has a rank");
    SC_CHECK(stride_[i] == 0, "the order names each axis once");
    stride_[i] = stride;
    stride *= degree_[i];
  }
}

bool RankMesh::fills_nodes_alike(int gpus) const {
  for (std::size_t i = 0; i < kAxisCount; ++i) {
    const int ranks = stride_[i] * degree_[i];
    if (ranks % gpus != 0 && gpus % ranks != 0) return false;
  }
  return true;
}

int RankMesh::size() const {
  int product = 1;
  for (const int degree : degree_) product *= degree;
  return product;
}

int RankMesh::rank_at(const std::array<int, kAxisCount>& coordinates) const {
  int rank = 0;
  for (std::size_t i = 0; i < kAxisCount; ++i) {
    SC_CHECK(coordinates[i] >= 0 && coordinates[i] < degree_[i], "a coordinate lies on its axis");
    rank += coordinates[i] * stride_[i];
  }
  return rank;
}

int RankMesh::first_of_group(int rank, std::initializer_list<Axis> axes) const {
  int first = rank;
  for (const Axis axis : axes) first -= coordinate(rank, axis) * stride(axis);
  return first;
}

std::vector<int> RankMesh::group(int rank, std::initializer_list<Axis> axes) const {
  SC_CHECK(rank >= 0 && rank < size(), "a rank of the mesh");
  std::vector<int> ranks = {first_of_group(rank, axes)};
  for (const Axis axis : axes) {
    const std::size_t so_far = ranks.size();
    for (int c = 1; c < degree(axis); ++c)
      for (std::size_t i = 0; i < so_far; ++i) ranks.push_back(ranks[i] + c * stride(axis));
  }
  std::ranges::sort(ranks);
  return ranks;
}

// Ascending ranks count along the axis of the smallest stride first. Two axes have one stride only where one
// of them has a single rank, and then it does not count.
int RankMesh::ranks_below(Axis axis, std::initializer_list<Axis> axes) const {
  int below = 1;
  for (const Axis inner : axes)
    if (stride(inner) < stride(axis)) below *= degree(inner);
  return below;
}

int RankMesh::position(int rank, std::initializer_list<Axis> axes) const {
  int position = 0;
  for (const Axis axis : axes) position += coordinate(rank, axis) * ranks_below(axis, axes);
  return position;
}

int RankMesh::rank_of_position(int first, std::initializer_list<Axis> axes, int position) const {
  int rank = first;
  for (const Axis axis : axes) rank += position / ranks_below(axis, axes) % degree(axis) * stride(axis);
  return rank;
}

int RankMesh::group_size(int rank, std::initializer_list<Axis> axes) const {
  SC_CHECK(rank >= 0 && rank < size(), "a rank of the mesh");
  int ranks = 1;
  for (const Axis axis : axes) ranks *= degree(axis);
  return ranks;
}

std::vector<int> RankMesh::block_of(int rank, std::initializer_list<Axis> axes, int block) const {
  SC_CHECK(block >= 1 && group_size(rank, axes) % block == 0, "blocks fill the group");
  const int first = first_of_group(rank, axes), begin = position(rank, axes) / block * block;
  std::vector<int> ranks;
  for (int i = begin; i < begin + block; ++i) ranks.push_back(rank_of_position(first, axes, i));
  return ranks;
}

std::vector<int> RankMesh::across_blocks(int rank, std::initializer_list<Axis> axes, int block) const {
  const int all = group_size(rank, axes);
  SC_CHECK(block >= 1 && all % block == 0, "blocks fill the group");
  const int first = first_of_group(rank, axes);
  std::vector<int> ranks;
  for (int i = position(rank, axes) % block; i < all; i += block)
    ranks.push_back(rank_of_position(first, axes, i));
  return ranks;
}

namespace {

// Ascending ranks, hence ascending nodes.
GroupPlacement on_nodes(const Cluster& cluster, const std::vector<int>& members) {
  std::vector<int> parts;  // ranks on each node
  int last_node = -1;
  for (const int member : members) {
    const int node = cluster.node_of(device_of(member));
    if (node != last_node) parts.push_back(0);
    last_node = node;
    ++parts.back();
  }
  const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
  return {.ranks = static_cast<int>(members.size()),
          .nodes = static_cast<int>(parts.size()),
          .ranks_per_node = *most,
          .groups_per_node = 0,
          .least_ranks_per_node = *least};
}

// Keys of the ranks on a node, each as often as its group has ranks there: how many groups, or, with
// `leaving`, those of them that have fewer there than `ranks`.
template <class Key>
int count_groups(std::vector<Key> keys, int ranks, bool leaving) {
  std::ranges::sort(keys);
  int groups = 0;
  for (auto first = keys.begin(); first != keys.end();) {
    const auto next = std::upper_bound(first, keys.end(), *first);
    if (!leaving || next - first < ranks) ++groups;
    first = next;
  }
  return groups;
}

}  // namespace

template <class GroupKey>
GroupPlacement RankMesh::place(const Cluster& cluster, int rank, const std::vector<int>& members,
                               GroupKey group_key) const {
  SC_CHECK(size() <= cluster.gpu_count(), "every rank has a GPU");
  GroupPlacement result = on_nodes(cluster, members);
  const auto groups_on = [&](int node) {
    const int first = cluster.first_gpu(node);
    const int end = std::min(first + cluster.gpus_in(node), size());
    std::vector<decltype(group_key(rank))> groups;
    for (int other = first; other < end; ++other) groups.push_back(group_key(other));
    return count_groups(std::move(groups), result.ranks, result.nodes > 1);
  };
  result.groups_per_node = groups_on(cluster.node_of(device_of(rank)));
  if (cluster.spec().groups.size() > 1 || fills_nodes_alike(cluster.gpus_in(0))) return result;
  int last_node = -1;
  for (const int member : members) {
    const int node = cluster.node_of(device_of(member));
    if (node != last_node) result.groups_per_node = std::max(result.groups_per_node, groups_on(node));
    last_node = node;
  }
  return result;
}

GroupPlacement RankMesh::placement(const Cluster& cluster, int rank, std::initializer_list<Axis> axes) const {
  return place(cluster, rank, group(rank, axes), [&](int other) { return first_of_group(other, axes); });
}

GroupPlacement RankMesh::block_placement(const Cluster& cluster, int rank, std::initializer_list<Axis> axes,
                                         int block) const {
  return place(cluster, rank, block_of(rank, axes, block), [&](int other) {
    return std::pair(first_of_group(other, axes), position(other, axes) / block);
  });
}

GroupPlacement RankMesh::across_blocks_placement(const Cluster& cluster, int rank,
                                                 std::initializer_list<Axis> axes, int block) const {
  return place(cluster, rank, across_blocks(rank, axes, block), [&](int other) {
    return std::pair(first_of_group(other, axes), position(other, axes) % block);
  });
}

}  // namespace stagecraft
