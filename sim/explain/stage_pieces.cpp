#include "sim/explain/stage_pieces.hpp"

#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/price_layers.hpp"
#include "sim/lower/price_operators.hpp"
#include "sim/lower/stage_operators.hpp"
#include "sim/price_iteration.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

struct PieceNames {
  std::string one, all;
};

PieceNames names_of(const CountedOps& piece) {
  switch (piece.unit) {
    case UnitKind::kEmbedding:
      return {.one = "embedding", .all = "embeddings"};
    case UnitKind::kMtp:
      return {.one = "projection of multi-token prediction", .all = "projections of multi-token predictions"};
    case UnitKind::kHead:
      return {.one = "head", .all = "heads"};
    case UnitKind::kLayer:
      break;
  }
  const std::string kind = std::string(has_experts(piece.layer) ? " of experts" : "") +
                           (in_window(piece.layer) ? " in a window" : "");
  return {.one = "layer" + kind + (piece.recomputed ? " that is recomputed" : ""),
          .all = "layers" + kind + (piece.recomputed ? " that are recomputed" : "")};
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
  const PricingRequest request = pricing_request(scenario_, plan_, false);
  PlacementMemo memo;
  const Network network = network_of(cluster, *scenario_.profile, request, memo);
  std::vector<StagePiece> slowest;
  Duration longest{};
  const StageContent& content = plan_.stages[static_cast<std::size_t>(held.stage)];
  for (const LayerGroups& groups : layer_groups_of(network, plan_.places().rank_of(held.stage, held.copy))) {
    std::vector<StagePiece> pieces;
    Duration here{};
    for (CountedOps& counted : stage_operators(*model, request, content)) {
      StagePrice price = price_operators(counted.ops, network, request.shard, groups);
      here += price.total() * counted.times;
      PieceNames names = names_of(counted);
      pieces.push_back({.name = std::move(names.one),
                        .all = std::move(names.all),
                        .times = counted.times,
                        .ops = std::move(counted.ops),
                        .price = std::move(price)});
    }
    if (!slowest.empty() && here <= longest) continue;
    slowest = std::move(pieces);
    longest = here;
  }
  return slowest;
}

}  // namespace stagecraft
