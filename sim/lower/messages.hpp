// Prices of communication: messages between stages, and collectives of groups of ranks.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/operators.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/rank_groups.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster.hpp"
#include "topology/collective.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

// The network that the job of the request runs on; whoever prices says which memo serves it. `patterns` is
// used where the request asks for shared links.
[[nodiscard]] Network network_of(const Cluster& cluster, const HardwareProfile& profile,
                                 const PricingRequest& request, PlacementMemo& memo,
                                 PatternTable* patterns = nullptr);

inline constexpr std::size_t kCommGroupCount = 4;

struct CollectiveJob {
  CollectiveKind kind;
  Bytes size;  // nccl-tests' convention
  Category category;
  Duration beside{};  // time of the ranks themselves, added to the time on the network
};

// A group of ranks, as one of its GPUs sees it.
struct PlacedGroup {
  int member = 0;
  GroupPlacement placement;
  RankGroup group = RankGroup::kTensor;
};

// The groups of a pipeline rank, one per distinct placement. Regular layouts have one placement; tensor 3 on
// nodes of 8 GPUs has groups within a node and groups over two nodes.
[[nodiscard]] const std::vector<PlacedGroup>& groups_of(const Network& network, int pipeline_rank,
                                                        RankGroup group);

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

// Remembers placements and message prices for plans with the same degrees, rank order and cluster. With
// thousands of GPUs they are most of the cost of a price. On shared links the price of a message has traffic,
// in patterns of one pricing: there each pricing has a memo of its own.
struct PlacementMemo {
  std::map<std::pair<int, RankGroup>, std::vector<PlacedGroup>> groups;  // by pipeline rank
  std::map<int, std::vector<LayerGroups>> layers;                        // by pipeline rank
  std::map<std::tuple<int, int, Bytes>, EdgePrice> messages;             // from rank to rank
  UplinkTables uplinks;
};

// Remembers the costs of collectives for plans on one cluster with one profile. Equal placements on equal
// nodes take equal time for equal bytes, and thousands of plans ask for the same ones.
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

// Price of the job in the slowest group: the other groups wait at the next barrier.
//   requires  one group at least.
[[nodiscard]] PassPrice group_price(const Network& network, const std::vector<PlacedGroup>& groups,
                                    const CollectiveJob& job);

// Price of a message of `size` bytes per GPU from a stage to the next of its copy, in both directions, for
// the slowest pair of GPUs.
[[nodiscard]] EdgePrice edge_price(const Network& network, HeldStage from, Bytes size);

// The price of a message from one pipeline rank to another.
[[nodiscard]] EdgePrice rank_message(const Network& network, int from, int to, Bytes size);

// An all-reduce of every GPU of a pipeline rank with its counterpart on another; the slowest pair counts.
// requires two different ranks.
[[nodiscard]] PassPrice pair_price(const Network& network, int rank, int other, Bytes size);

}  // namespace stagecraft
