#include "sim/price_iteration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "base/diagnostic.hpp"
#include "sim/lower/lower.hpp"
#include "sim/mixed_prices.hpp"

namespace stagecraft {

PricingRequest pricing_request(const Scenario& scenario, const ParallelPlan& plan, bool shared_links) {
  PricingRequest request{.plan = plan,
                         .parallelism = scenario.parallelism,
                         .training = scenario.training,
                         .overlap = scenario.overlap,
                         .options = scenario.options,
                         .offload = scenario.offload,
                         .gpus = scenario.job_gpus,
                         .shared_links = shared_links && scenario.network.shared()};
  request.shard = shard_of(request, scenario.profile ? scenario.profile->memory.fp8_weight_copies() : 2,
                           overlaps_expert_exchanges(scenario));
  // Without norms before the blocks this module has nothing to repeat, nor does it change what is kept.
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model != nullptr && !model->has_norms_before())
    request.shard.modules = request.shard.modules - RecomputeModules{RecomputeModule::kLayerNorm};
  return request;
}

std::vector<Bytes> message_bytes(const Scenario& scenario, const ParallelPlan& plan) {
  const int senders = plan.stage_count() - 1;
  const auto* stages = std::get_if<StagesSpec>(&scenario.model);
  const auto* transformer = std::get_if<TransformerSpec>(&scenario.model);
  const PricingRequest request = pricing_request(scenario, plan, false);
  std::vector<Bytes> bytes;
  for (int stage = 0; stage < senders; ++stage)
    bytes.push_back(stages != nullptr ? message_bytes(*stages, stage)
                                      : message_bytes(*transformer, request, stage));
  return bytes;
}

namespace {

IterationPrices unchecked_price(const Scenario& scenario, const Cluster* cluster,
                                const PricingRequest& request) {
  if (const auto* stages = std::get_if<StagesSpec>(&scenario.model)) {
    const HardwareProfile* profile = scenario.profile ? &*scenario.profile : nullptr;
    return price_stages(*stages, profile, cluster, request);
  }
  SC_CHECK(cluster != nullptr && scenario.profile, "a transformer needs a cluster and a profile");
  if (!scenario.group_profiles.empty()) return price_on_several_devices(scenario, *cluster, request);
  return price_transformer(std::get<TransformerSpec>(scenario.model), *scenario.profile, *cluster, request);
}

// Sum of all prices in floating point, which does not overflow where times would.
double seconds_at_most(const IterationPrices& prices, const ParallelPlan& plan) {
  double passes = 0, ends = 0;
  const auto add = [](double& sum, const PassPrice& price) {
    for (const double seconds : price.seconds_by_provenance()) sum += seconds;
  };
  for (const StagePrice& stage : prices.stages) {
    for (const Pass pass : {Pass::kForward, Pass::kRecompute, Pass::kInputGradient, Pass::kWeightGradient})
      for (const PassPrice* part : parts_of(stage, pass, false)) add(passes, *part);
    for (const UnitPrice& unit : stage.units) {
      for (int i = 0; i < kMostUnitGathers; ++i) add(passes, unit.gather);
      for (const PassPrice* part : {&unit.reduce, &unit.replicate}) add(passes, *part);
    }
  }
  for (const EdgePrice& edge : prices.edges)
    for (const PassPrice* part : {&edge.forward, &edge.backward}) add(passes, *part);
  for (const RankPrice& rank : prices.ranks)
    for_each_price(rank, [&](const PassPrice& price) { add(ends, price); });
  add(ends, prices.host);
  return passes * plan.micro_batches + ends;
}

// How many times as long a pass may take on a slow GPU and over a degraded link. Faults of one rank, or one name of
// links, multiply.
double most_stretched(std::span<const FaultSpec> faults) {
  std::map<int, double> ranks;
  std::map<std::string, double> links;
  double slowest = 1, thinnest = 1;
  for (const FaultSpec& fault : faults) {
    if (fault.kind == FaultKind::kDegradedLink)
      thinnest = std::max(thinnest, links.try_emplace(fault.link, 1).first->second /= fault.factor);
    else
      for (const int rank : fault.ranks)
        slowest = std::max(slowest, ranks.try_emplace(rank, 1).first->second *= fault.factor);
  }
  return slowest * thinnest;
}

// Nanoseconds are counted to 2^63, which the longest of all timelines has to stay below.
void check_length(const Scenario& scenario, double seconds) {
  constexpr double kMost = 100 * kSecondsPerYear;
  if (seconds < kMost) return;
  Diagnostics diagnostics;
  diagnostics.error(
      {.code = "quantity-too-large",
       .where = {.file = scenario.source},
       .path = {},
       .message = fmt::format("the passes of {} take {:.3g} years, and 100 are counted",
                              scenario.schedule.iterations == 1
                                  ? "an iteration"
                                  : fmt::format("{} iterations in a row", scenario.schedule.iterations),
                              seconds / kSecondsPerYear),
       .hint = "a time, a length or a number of layers has too many digits"});
  diagnostics.throw_if_errors();
}

}  // namespace

IterationPrices price(const Scenario& scenario, const Cluster* cluster, const PricingRequest& request) {
  IterationPrices prices = unchecked_price(scenario, cluster, request);
  check_length(scenario, seconds_at_most(prices, request.plan) * scenario.schedule.iterations *
                             most_stretched(scenario.faults));
  return prices;
}

}  // namespace stagecraft
