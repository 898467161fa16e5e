#include "sim/lower/own_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/check.hpp"
#include "sim/lower/messages.hpp"

namespace stagecraft {
namespace {

// Of a link that carries a second of traffic in a second.
constexpr Bandwidth kSecondPerSecond{1e9};

// The links of rank r are 2r and 2r + 1.
enum class OwnLink : std::uint8_t { kNics, kNvlinks };
constexpr int kLinksOfRank = 2;

bool any_group(const Network& network, std::initializer_list<RankGroup> kinds,
               bool (*holds)(const GroupPlacement&)) {
  return std::ranges::any_of(kinds, [&](RankGroup kind) {
    return std::ranges::any_of(groups_of(network, 0, kind),
                               [&](const PlacedGroup& group) { return holds(group.placement); });
  });
}

bool leaves_its_node(const GroupPlacement& group) {
  return group.nodes > 1;
}
bool stays_in_a_node(const GroupPlacement& group) {
  return group.nodes == 1 && group.ranks > 1;
}
bool has_neighbours(const GroupPlacement& group) {
  return group.ranks_per_node > 1;
}

bool has_traffic_beside_passes(const PricingRequest& request) {
  const int zero = request.zero_stage();
  return zero >= 2 || request.overlap.gradients || (zero == 1 && request.overlap.parameters);
}

void add_to(const Network& network, int pipeline_rank, OwnLink link, Duration busy, Traffic& traffic) {
  if (busy == Duration::zero()) return;
  constexpr int kFirstKey = -3;  // no group of ranks
  const int which = static_cast<int>(link);
  const PatternId pattern =
      network.own_links->of({.from = pipeline_rank, .to = pipeline_rank, .group = kFirstKey + which}, [&] {
        const EdgeId edge(static_cast<std::uint32_t>(kLinksOfRank * pipeline_rank + which));
        return Pattern{.loads = {{edge, 1.0}}};
      });
  traffic.add(pattern, kSecondPerSecond.count() * to_seconds(busy));
}

}  // namespace

bool meets_at_own_links(const Network& network, const PricingRequest& request) {
  if (request.shared_links || network.cluster.spec().groups.size() > 1) return false;
  if (!has_traffic_beside_passes(request)) return false;
  const auto of_passes = {RankGroup::kTensor, RankGroup::kContext, RankGroup::kExpert,
                          RankGroup::kExpertTensor};
  const auto any_of_data = [&](bool (*holds)(const GroupPlacement&)) {
    return any_group(network, {RankGroup::kReplicas}, holds) ||
           (request.plan.has_experts() && any_group(network, {RankGroup::kExpertReplicas}, holds));
  };
  return (any_group(network, of_passes, leaves_its_node) && any_of_data(leaves_its_node)) ||
         (any_group(network, of_passes, has_neighbours) && any_of_data(stays_in_a_node));
}

void add_to_own_links(const Network& network, int pipeline_rank, const CollectiveCost& cost,
                      std::int64_t times, Traffic& traffic) {
  SC_CHECK(network.own_links != nullptr, "traffic meets at the links of a rank");
  add_to(network, pipeline_rank, OwnLink::kNics, cost.between_nodes * times, traffic);
  add_to(network, pipeline_rank, OwnLink::kNvlinks, cost.in_node * times, traffic);
}

NetworkUse own_links_use(const Network& network, int pipeline_rank, Category category,
                         const CollectiveCost& cost) {
  NetworkUse use{.category = category, .time = cost.time, .transfer = cost.transfer};
  add_to_own_links(network, pipeline_rank, cost, 1, use.traffic);
  return use;
}

SharedNetwork own_links_of(int ranks) {
  SharedNetwork network;
  for (int rank = 0; rank < ranks; ++rank)
    for (const char* links : {"NICs", "NVLinks"})
      network.links.push_back(
          {.name = fmt::format("{} of rank {}", links, rank), .capacity = kSecondPerSecond});
  return network;
}

}  // namespace stagecraft
