#include "sim/mixed_prices.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <variant>

#include "base/check.hpp"
#include "sim/scenario/device_modes.hpp"

namespace stagecraft {
namespace {

Duration end_of(const RankPrice& rank) {
  Duration sum{};
  for_each_price(rank, [&sum](const PassPrice& price) { sum += price.total(); });
  return sum;
}

// The groups that each pipeline rank has GPUs of.
std::vector<std::set<std::size_t>> groups_by_rank(const ClusterSpec& cluster, const ParallelPlan& plan) {
  std::vector<std::set<std::size_t>> groups(static_cast<std::size_t>(plan.pipeline));
  int gpu = 0;
  for (std::size_t group = 0; group < cluster.groups.size(); ++group)
    for (int left = cluster.groups[group].count * cluster.groups[group].node.gpus; left > 0; --left, ++gpu)
      if (gpu < plan.gpus())
        groups[static_cast<std::size_t>(plan.mesh.coordinate(gpu, Axis::kPipeline))].insert(group);
  return groups;
}

// The price of the slowest among these kinds.
template <class Price, class Of>
const Price& slowest(const std::vector<IterationPrices>& kinds, const std::set<std::size_t>& among, Of of) {
  SC_CHECK(!among.empty(), "a rank runs on a GPU");
  const Price* most = nullptr;
  Duration longest{};
  for (const std::size_t kind : among) {
    const auto& [price, time] = of(kinds[kind]);
    if (most != nullptr && time <= longest) continue;
    most = price;
    longest = time;
  }
  return *most;
}

}  // namespace

const HardwareProfile& smallest_device(const Scenario& scenario) {
  const auto profiles = profiles_of(scenario);
  SC_CHECK(!profiles.empty(), "a device has a profile");
  return **std::ranges::min_element(profiles, {}, [](const HardwareProfile* profile) {
    return profile->device.memory - profile->memory.context.value - profile->memory.communicators.value;
  });
}

IterationPrices price_on_several_devices(const Scenario& scenario, const Cluster& cluster,
                                         const PricingRequest& request) {
  SC_CHECK(!request.shared_links, "prices with a network of their own cannot be mixed");
  const auto& model = std::get<TransformerSpec>(scenario.model);
  std::vector<IterationPrices> kinds;
  PricingRequest each = request;
  each.collectives = nullptr;  // the memo holds one profile's costs only
  for (const HardwareProfile& profile : scenario.group_profiles) {
    each.shard.fp8_layouts = profile.memory.fp8_weight_copies();
    kinds.push_back(price_transformer(model, profile, cluster, each));
  }
  const auto groups = groups_by_rank(*scenario.cluster, request.plan);
  IterationPrices mixed = kinds.front();
  for (const HeldStage& held : request.plan.places().all()) {
    const std::size_t stage = request.plan.places().index_of(held.stage, held.copy);
    const int rank = request.plan.places().rank_of(held.stage, held.copy);
    mixed.stages[stage] = slowest<StagePrice>(
        kinds, groups[static_cast<std::size_t>(rank)], [stage](const IterationPrices& prices) {
          return std::pair(&prices.stages[stage], prices.stages[stage].total());
        });
  }
  for (std::size_t i = 0; i < mixed.edges.size(); ++i)
    for (const IterationPrices& prices : kinds) {
      const EdgePrice& edge = prices.edges[i];
      if (edge.forward.total() > mixed.edges[i].forward.total()) mixed.edges[i].forward = edge.forward;
      if (edge.backward.total() > mixed.edges[i].backward.total()) mixed.edges[i].backward = edge.backward;
    }
  for (std::size_t rank = 0; rank < mixed.ranks.size(); ++rank)
    mixed.ranks[rank] = slowest<RankPrice>(kinds, groups[rank], [rank](const IterationPrices& prices) {
      return std::pair(&prices.ranks[rank], end_of(prices.ranks[rank]));
    });
  for (const IterationPrices& prices : kinds) {
    if (prices.host.total() > mixed.host.total()) mixed.host = prices.host;
    mixed.offload = worse_of(mixed.offload, prices.offload);
  }
  return mixed;
}

}  // namespace stagecraft
