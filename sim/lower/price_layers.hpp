// What the passes of a stage cost: its layers by kind, its ends, its layers of multi-token prediction.
//
// Collectives of a layer run over four kinds of groups, each placed and priced on the links that it really
// uses; of the GPUs of a pipeline rank the one with the slowest groups counts, because the others wait for
// it.
//
// What of a collective compute hides (t_c collective, t_g compute beside it, o = the profile's
// tensor_overlap):
//   kWeightGradient   o of the backward tensor collectives, at most the weight-gradient GEMMs' time; of an
//                     input gradient whose weight gradient is put aside only the gathers, taken to run
//                     beside the input-gradient GEMM (assumed: Zero Bubble's fork gathers behind it, in W,
//                     and waits): reductions are waited for (StagePrice::unhidden)
//   kNextGemm, kPreviousGemm   exposed max(0, t_c - t_g) + (1 - o) min(t_c, t_g): a chunked collective and
//                     the GEMM beside it lose as much as one beside a weight gradient does. o = 0.3, that is
//                     a loss phi of 0.7, is fitted on H100 runs with chunked collectives and without.
//   kAttentionBlock   message by message: exposed max(0, t_c - the block before it); blocks are the attention
//                     kernels listed before the message
//   kSharedExperts    1 / sigma of it, at most 1 / sigma of their half: an exchange between nodes slows the
//                     compute beside it by the profile's gradient_overlap_slowdown sigma, as in
//                     fused_pair.hpp
// One stretch of compute hides one collective at a time.
//   source  Megatron-LM and TransformerEngine for what runs beside what; Zero Bubble's fork of Megatron-LM
//           (core/tensor_parallel/layers.py, WeightGradStore) where passes are split; phi: fits of 405B and
//           175B runs.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "models/operators.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {

// The groups of the GPUs of a pipeline rank, one of each way to lie on the nodes.
[[nodiscard]] std::vector<LayerGroups> layer_groups_of(const Network& network, int pipeline_rank);

// An exchange that sends tokens once to each node: an all-to-all of the ranks at the same place of each node,
// and one of the ranks of a node, both at the same time. Each has its latency; the bytes of the slower count,
// as those of the two tiers of any collective over nodes (topology/collective.hpp).
struct NodeExchange {
  PlacedGroup rails, in_node;
  Bytes between{};  // of one rank over the nodes; op.bytes inside them
  CollectiveCost over_rails = {}, over_node = {};

  [[nodiscard]] CollectiveCost cost() const;
};
[[nodiscard]] NodeExchange node_exchange(const Network& network, const LayerGroups& groups, const Op& op);

// One launch of a collective of a layer; a tensor collective with the software's overhead and the fabric's
// site terms.
[[nodiscard]] CollectiveCost layer_collective_cost(const Network& network, const LayerGroups& groups,
                                                   const Op& op);

// The four passes of a list of operators, on the slowest of the job's GPUs. How long the host takes is in
// PassPrice::wanted(); what routing makes new each time waits for it at once, other layers as a stage: the
// host runs ahead within a pass.
[[nodiscard]] StagePrice price_operators(const LayerOps& ops, const Network& network, const Shard& shard,
                                         const LayerGroups& groups);

// What a stage can be made of.
struct PiecePrices {
  LayerGroups groups;
  std::array<StagePrice, kLayerKindNames.size()> layer{}, recomputed{};  // by LayerKind; with full recompute
  StagePrice embedding{}, head{}, mtp{};  // mtp: its inner layer and a second head included

  [[nodiscard]] const StagePrice& of(const StageUnit& unit) const;
};

class StagePricing {
 public:
  StagePricing(const TransformerSpec& model, const Network& network, const PricingRequest& request);

  // The passes of a stage, and under ZeRO >= 2 its units with their shares of the passes, still without
  // traffic. Asks the collective's placement once per pipeline rank.
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
  const Shard shard_;
  std::vector<PiecePrices> pieces_;                         // one per distinct placement
  std::vector<std::vector<std::size_t>> of_pipeline_rank_;  // empty: not asked yet
};

}  // namespace stagecraft
