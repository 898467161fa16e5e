#include "sim/explain/stage_pieces.hpp"

#include <utility>
#include <variant>

#include "base/check.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/price_layers.hpp"
#include "sim/simulate_parts.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

Duration total(const StagePrice& price) {
  return price.forward.total() + price.recompute.total() + price.input_gradient.total() +
         price.weight_gradient.total();
}

// Without prices.
std::vector<StagePiece> contents(const TransformerSpec& model, const Shard& shard,
                                 const StageContent& content) {
  Shard once = shard;
  if (once.recompute == Recompute::kFull) once.recompute = Recompute::kNone;
  const std::int64_t dense = content.layers - content.expert_layers;
  const std::int64_t dense_again = content.recomputed - content.recomputed_experts;
  std::vector<StagePiece> pieces;
  const auto add = [&](const char* name, const char* all, std::int64_t times, auto make) {
    if (times > 0) pieces.push_back({.name = name, .all = all, .times = times, .ops = make(), .price = {}});
  };
  add("layer", "layers", dense - dense_again,
      [&] { return layer_operators(model, once, LayerKind::kDense); });
  add("layer that is recomputed", "layers that are recomputed", dense_again,
      [&] { return layer_operators(model, shard, LayerKind::kDense); });
  add("layer of experts", "layers of experts", content.expert_layers - content.recomputed_experts,
      [&] { return layer_operators(model, once, LayerKind::kExperts); });
  add("layer of experts that is recomputed", "layers of experts that are recomputed",
      content.recomputed_experts, [&] { return layer_operators(model, shard, LayerKind::kExperts); });
  add("embedding", "embeddings", content.embedding ? 1 : 0,
      [&] { return embedding_operators(model, shard); });
  add("head", "heads", content.head ? 1 : 0, [&] { return head_operators(model, shard); });
  return pieces;
}

}  // namespace

const std::vector<StagePiece>& StagePieces::of(HeldStage held) {
  const auto [at, is_new] = known_.try_emplace({held.stage, held.copy});
  if (is_new) at->second = priced(held);
  return at->second;
}

std::vector<StagePiece> StagePieces::priced(HeldStage held) const {
  const auto* model = std::get_if<TransformerSpec>(&scenario_.model);
  SC_CHECK(model != nullptr && scenario_.cluster && scenario_.profile, "a transformer on hardware");
  const Cluster cluster(*scenario_.cluster);
  const Network network{.cluster = cluster,
                        .profile = *scenario_.profile,
                        .plan = plan_,
                        .tensor_collective_overhead = scenario_.options.tensor_collective_overhead,
                        .host = host_costs(scenario_.options)};
  const Shard shard = shard_of(pricing_request(scenario_, plan_, false));
  std::vector<StagePiece> slowest;
  Duration longest{};
  const StageContent& content = plan_.stages[static_cast<std::size_t>(held.stage)];
  for (const LayerGroups& groups : layer_groups_of(network, plan_.places().rank_of(held.stage, held.copy))) {
    std::vector<StagePiece> pieces = contents(*model, shard, content);
    Duration here{};
    for (StagePiece& piece : pieces) {
      piece.price = price_operators(piece.ops, network, shard, groups);
      here += total(piece.price) * piece.times;
    }
    if (!slowest.empty() && here <= longest) continue;
    slowest = std::move(pieces);
    longest = here;
  }
  return slowest;
}

}  // namespace stagecraft
