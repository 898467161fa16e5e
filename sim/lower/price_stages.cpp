#include "base/check.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"

namespace stagecraft {
namespace {

template <class T>
T entry(const std::vector<T>& list, std::size_t stage) {
  if (list.empty()) return T{};
  return list.size() == 1 ? list.front() : list.at(stage);
}

StagePrice price_stage(const StagesSpec& model, std::size_t stage) {
  StagePrice price;
  price.forward.add(Category::kForward, entry(model.forward, stage), Provenance::kAssumed);
  price.input_gradient.add(Category::kBackward, entry(model.input_gradient, stage), Provenance::kAssumed);
  price.weight_gradient.add(Category::kBackward, entry(model.weight_gradient, stage), Provenance::kAssumed);
  return price;
}

}  // namespace

IterationPrices price_stages(const StagesSpec& model, const HardwareProfile* profile, const Cluster* cluster,
                             const PricingRequest& request) {
  const ParallelPlan& plan = request.plan;
  // Without measured collectives the defaults of collective_cost() hold.
  const HardwareProfile unmeasured;
  const HardwareProfile& known = profile != nullptr ? *profile : unmeasured;
  IterationPrices prices;
  prices.ranks.resize(static_cast<std::size_t>(plan.pipeline));
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    prices.stages.push_back(price_stage(model, stage));
    prices.ranks[stage % static_cast<std::size_t>(plan.pipeline)].gradient_buckets.emplace_back();
    if (stage + 1 < plan.stages.size()) prices.edges.emplace_back();
  }
  if (cluster == nullptr) return prices;
  const Network network{.cluster = *cluster,
                        .profile = known,
                        .plan = plan,
                        .patterns = request.shared_links ? &prices.patterns : nullptr};
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (plan.data > 1) {
      const auto groups =
          groups_of(network, plan.rank_of_stage(static_cast<int>(stage)), RankGroup::kReplicas);
      auto& chunks = prices.ranks[stage % static_cast<std::size_t>(plan.pipeline)].gradient_buckets;
      chunks[stage / static_cast<std::size_t>(plan.pipeline)].push_back(group_price(
          network, groups, {CollectiveKind::kAllReduce, entry(model.gradient, stage), Category::kDataComm}));
    }
    if (stage + 1 < plan.stages.size())
      prices.edges[stage] = edge_price(network, static_cast<int>(stage), entry(model.activation, stage));
  }
  return prices;
}

}  // namespace stagecraft
