// Prices of the passes of a stage: its layers by kind, its ends, its layers of multi-token prediction.
//
// Collectives of a layer run over four kinds of groups, each placed and priced on the links that it uses. Of
// the GPUs of a pipeline rank the one with the slowest groups counts, because the others wait for it.
#pragma once

#include <cstddef>
#include <vector>

#include "models/operators.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {

// The layer groups of the GPUs of a pipeline rank, one per distinct placement.
[[nodiscard]] const std::vector<LayerGroups>& layer_groups_of(const Network& network, int pipeline_rank);

// Prices of the pieces that stages consist of.
struct PiecePrices {
  LayerGroups groups;
  std::vector<StagePrice> layer{},
      recomputed{};                       // by LayerKind, up to the last of the model; with full recompute
  StagePrice embedding{}, head{}, mtp{};  // mtp: its inner layer included; head: those of all predictions

  [[nodiscard]] const StagePrice& of(const StageUnit& unit) const;
};

class StagePricing {
 public:
  StagePricing(const TransformerSpec& model, const Network& network, const PricingRequest& request);

  // Prices the passes of a stage, and under ZeRO >= 2 its units with their shares of the passes, without
  // their traffic. Each pipeline rank is placed once.
  [[nodiscard]] StagePrice price(HeldStage held);

 private:
  [[nodiscard]] PiecePrices price_pieces(const LayerGroups& groups) const;
  [[nodiscard]] StagePrice price_mtp(const PiecePrices& pieces, const LayerGroups& groups) const;
  [[nodiscard]] StagePrice sum_of(const PiecePrices& pieces, const StageContent& content) const;
  [[nodiscard]] bool same_links(const LayerGroups& a, const LayerGroups& b) const;
  // Indices into pieces_, one per placement of the rank.
  const std::vector<std::size_t>& placements_of(int pipeline_rank);

  const TransformerSpec& model_;
  const Network& network_;
  const PricingRequest& request_;
  const Shard& shard_;
  std::vector<PiecePrices> pieces_;                         // one per distinct placement
  std::vector<std::vector<std::size_t>> of_pipeline_rank_;  // empty: not placed yet
};

}  // namespace stagecraft
