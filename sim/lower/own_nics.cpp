#include "sim/lower/own_nics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/check.hpp"
#include "sim/lower/messages.hpp"

namespace stagecraft {
namespace {

// Of a link that carries a second of traffic in a second.
constexpr Bandwidth kSecondPerSecond{1e9};

bool leave_a_node(const Network& network, std::initializer_list<RankGroup> kinds) {
  return std::ranges::any_of(kinds, [&](RankGroup kind) {
    return std::ranges::any_of(groups_of(network, 0, kind),
                               [](const PlacedGroup& group) { return group.placement.nodes > 1; });
  });
}

bool has_traffic_beside_passes(const PricingRequest& request) {
  const int zero = request.zero_stage();
  return zero >= 2 || request.overlap.gradients || (zero == 1 && request.overlap.parameters);
}

}  // namespace

bool meets_at_nics(const Network& network, const PricingRequest& request) {
  if (request.shared_links || network.cluster.spec().groups.size() > 1) return false;
  return has_traffic_beside_passes(request) &&
         leave_a_node(network, {RankGroup::kTensor, RankGroup::kContext, RankGroup::kExpert,
                                RankGroup::kExpertTensor}) &&
         leave_a_node(network, {RankGroup::kReplicas, RankGroup::kExpertReplicas});
}

void add_to_own_nics(const Network& network, int pipeline_rank, Duration transfer, Traffic& traffic) {
  SC_CHECK(network.own_nics != nullptr, "traffic meets at the NICs of a rank");
  if (transfer == Duration::zero()) return;
  constexpr int kNics = -2;  // no group of ranks
  const PatternId pattern =
      network.own_nics->of({.from = pipeline_rank, .to = pipeline_rank, .group = kNics}, [&] {
        return Pattern{.loads = {{EdgeId(static_cast<std::uint32_t>(pipeline_rank)), 1.0}}};
      });
  traffic.add(pattern, kSecondPerSecond.count() * to_seconds(transfer));
}

NetworkUse own_nics_use(const Network& network, int pipeline_rank, Category category,
                        const CollectiveCost& cost, int nodes) {
  NetworkUse use{.category = category, .time = cost.time, .transfer = nodes > 1 ? cost.transfer : Duration()};
  add_to_own_nics(network, pipeline_rank, use.transfer, use.traffic);
  return use;
}

SharedNetwork own_nics_of(int ranks) {
  SharedNetwork network;
  for (int rank = 0; rank < ranks; ++rank)
    network.links.push_back({.name = fmt::format("NICs of rank {}", rank), .capacity = kSecondPerSecond});
  return network;
}

}  // namespace stagecraft
