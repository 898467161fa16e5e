// Prices of the four passes of a list of operators on one GPU, with its collectives.
//
// Exposed or hidden part of a collective (t_c collective, t_g overlapped compute, o = the profile's
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

#include "models/operators.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"

namespace stagecraft {

// The ranks that a collective of a layer runs over.
[[nodiscard]] RankGroup group_of(CommGroup group);

// An expert exchange that sends tokens once to each node: an all-to-all over the ranks at the same place of
// each node, and one over the ranks of a node, both at the same time. Each adds its latency. Only the
// transfer of the slower counts, as for the two tiers of any collective over nodes (topology/collective.hpp).
struct NodeExchange {
  PlacedGroup rails, in_node;
  Bytes between{};  // bytes of one rank between nodes; op.bytes inside a node
  CollectiveCost over_rails = {}, over_node = {};

  [[nodiscard]] CollectiveCost cost() const;
};
[[nodiscard]] NodeExchange node_exchange(const Network& network, const LayerGroups& groups, const Op& op);

// Cost of one launch of a layer's collective. A tensor collective includes the overheads of the software and
// the fabric.
[[nodiscard]] CollectiveCost layer_collective_cost(const Network& network, const LayerGroups& groups,
                                                   const Op& op);

// A pass lasts at least as long as its host needs; its wait beyond the GPU's time is `other`. Within a
// backward the host runs ahead, so recompute and both gradients wait together.
void wait_for_host(PassPrice& pass);
void wait_for_host(StagePrice& price);

// Prices the four passes of a list of operators, on the slowest of the job's GPUs. The host time is in
// PassPrice::wanted(). Layers with routed shapes wait for the host at once; other layers wait as a stage,
// because the host runs ahead within a pass.
[[nodiscard]] StagePrice price_operators(const LayerOps& ops, const Network& network, const Shard& shard,
                                         const LayerGroups& groups);

}  // namespace stagecraft
