#include "base/check.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/prices.hpp"

namespace stagecraft {
namespace {

StagePrice price_stage(const StagesSpec& model, const StageContent& content, std::size_t stage) {
  StagePrice price;
  price.forward.add(Category::kForward, of_stage(model.forward, stage), Provenance::kAssumed);
  price.input_gradient.add(Category::kBackward, of_stage(model.input_gradient, stage), Provenance::kAssumed);
  price.weight_gradient.add(Category::kBackward, of_stage(model.weight_gradient, stage),
                            Provenance::kAssumed);
  const std::vector<Duration>& again = model.recompute.empty() ? model.forward : model.recompute;
  if (content.recompute_pass)
    price.recompute.add(Category::kRecompute, of_stage(again, stage), Provenance::kAssumed);
  price.memory = pass_memory(model, content, stage);
  return price;
}

}  // namespace

Bytes message_bytes(const StagesSpec& model, int stage) {
  return of_stage(model.message.empty() ? model.activation : model.message, static_cast<std::size_t>(stage));
}

IterationPrices price_stages(const StagesSpec& model, const HardwareProfile* profile, const Cluster* cluster,
                             const PricingRequest& request) {
  const ParallelPlan& plan = request.plan;
  // Without measured collectives the defaults of collective_cost() hold.
  const HardwareProfile unmeasured;
  const HardwareProfile& known = profile != nullptr ? *profile : unmeasured;
  IterationPrices prices;
  prices.ranks.resize(static_cast<std::size_t>(plan.pipeline));
  const StagePlaces places = plan.places();
  for (const HeldStage& held : places.all()) {
    prices.stages.push_back(price_stage(model, plan.stages[static_cast<std::size_t>(held.stage)],
                                        static_cast<std::size_t>(held.stage)));
    if (profile != nullptr) prices.stages.back().beside = overlap_costs(*profile);
  }
  prices.edges.resize(prices.stages.size());
  for (RankPrice& rank : prices.ranks) {
    rank.gradient_buckets.resize(static_cast<std::size_t>(plan.virtual_stages * places.copies()));
    rank.copies.resize(rank.gradient_buckets.size());
  }
  if (cluster == nullptr) return prices;
  PlacementMemo memo;
  const Network network{.cluster = *cluster,
                        .profile = known,
                        .plan = plan,
                        .memo = memo,
                        .patterns = request.shared_links ? &prices.patterns : nullptr};
  for (const HeldStage& held : places.all()) {
    const auto stage = static_cast<std::size_t>(held.stage);
    const auto chunk = static_cast<std::size_t>(places.chunk_of(held.stage, held.copy));
    const int rank = places.rank_of(held.stage, held.copy);
    RankPrice& end = prices.ranks[static_cast<std::size_t>(rank)];
    if (plan.data > 1)
      end.gradient_buckets[chunk].push_back(
          group_price(network, groups_of(network, rank, RankGroup::kReplicas),
                      {CollectiveKind::kAllReduce, of_stage(model.gradient, stage), Category::kDataComm}));
    if (places.copies() > 1 && of_stage(model.gradient, stage) > Bytes(0))
      end.copies[chunk] = pair_price(network, places.rank_of(held.stage, 0), places.rank_of(held.stage, 1),
                                     of_stage(model.gradient, stage));
    if (held.stage + 1 < places.stages())
      prices.edges[places.index_of(held.stage, held.copy)] =
          edge_price(network, held, message_bytes(model, held.stage));
  }
  return prices;
}

}  // namespace stagecraft
