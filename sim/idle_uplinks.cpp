#include "sim/idle_uplinks.hpp"

#include <vector>

#include "sim/price_iteration.hpp"

namespace stagecraft {
namespace {

// Of all parts of an iteration that may use a network.
std::vector<Duration> times_of(const IterationPrices& prices) {
  std::vector<Duration> times;
  const auto add = [&](const PassPrice& price) { times.push_back(price.total()); };
  for (const StagePrice& stage : prices.stages) {
    for (const PassPrice* pass :
         {&stage.forward, &stage.recompute, &stage.input_gradient, &stage.weight_gradient, &stage.unhidden}) {
      add(*pass);
      times.push_back(pass->of(Category::kOther));  // what traffic takes a pass may have waited for its host
    }
    for (const UnitPrice& unit : stage.units)
      for (const PassPrice* traffic : {&unit.gather, &unit.reduce, &unit.replicate}) add(*traffic);
  }
  for (const EdgePrice& edge : prices.edges)
    for (const PassPrice* way : {&edge.forward, &edge.backward}) add(*way);
  for (const RankPrice& rank : prices.ranks) for_each_price(rank, add);
  return times;
}

}  // namespace

std::optional<std::string> word_on_idle_uplinks(const Scenario& scenario, const ParallelPlan& plan,
                                                const IterationPrices& prices) {
  if (!scenario.cluster || scenario.network.shared()) return std::nullopt;
  ClusterSpec spec = *scenario.cluster;
  if (!spec.fabric.has_leaves() || spec.fabric.oversubscription <= 1) return std::nullopt;
  if (spec.server_count() <= spec.fabric.nodes_per_leaf) return std::nullopt;  // said where it is read
  spec.fabric.oversubscription = 1;
  const Cluster wide(spec);
  if (times_of(price(scenario, &wide, pricing_request(scenario, plan))) != times_of(prices))
    return std::nullopt;
  return "cluster.fabric.oversubscription: had no effect: neither the groups of one kind nor the messages "
         "between two stages fill the uplinks of a leaf; network: flow knows what else meets there";
}

}  // namespace stagecraft
