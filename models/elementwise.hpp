// Bytes per element of the memory-bound operators, fused and eager: docs/op-inventory.md as a table.
//
// "Fused" is Megatron-LM with its fused kernels, "eager" plain PyTorch. Counts are operand lists at 16 bit.
//   source  operand counts over Megatron-LM core/fusions/ and core/transformer/transformer_config.py
//           @d98e8a64; score elements and biases: Korthikanti et al. (arXiv 2205.05198), section 4.
#pragma once

#include <string_view>

#include "models/op_builder.hpp"

namespace stagecraft {

struct Elementwise {
  MemoryPass forward, backward;
};

// Does software run the operation fused?
[[nodiscard]] constexpr bool fuses(const Shard& shard, LateFusion operation) {
  return shard.fused.has(operation) || (shard.fused_kernels && !shard.unfused.has(operation));
}

// Does software run the activation of a feed-forward block as one kernel?
[[nodiscard]] constexpr bool fuses_activation(const TransformerSpec& model, const Shard& shard) {
  return fuses(shard, is_gated(model.activation) ? LateFusion::kSwiglu : LateFusion::kGelu);
}

// Are clamps ahead of a gate kernels of their own?
[[nodiscard]] constexpr bool clamps_apart(const TransformerSpec& model, const Shard& shard) {
  return model.clamped_activation && (shard.joins_clamps || !fuses_activation(model, shard));
}

struct FusedOrEager {
  Elementwise fused, eager;
  [[nodiscard]] constexpr const Elementwise& of(bool is_fused) const { return is_fused ? fused : eager; }
  [[nodiscard]] constexpr const Elementwise& of(const Shard& shard) const { return of(shard.fused_kernels); }
};

inline constexpr MemoryPass kNothing{.bytes = 0, .kernels = 0};

// Backward reads dY and X and writes dX; the second kernel sums the weight gradient.
inline constexpr FusedOrEager kLayerNormTraffic{{{4, 1}, {6, 2}}, {{4, 1}, {8, 2}}};
// Eager: cast 6, square 8, mean 4, multiply 8, cast 6, weight 4.
inline constexpr FusedOrEager kRmsNormTraffic{{{4, 1}, {6, 2}}, {{36, 6}, {60, 10}}};
// Of a norm that reads the residual stream in fp32, as it is under autocast, and whose output products read in 16 bit.
// Fused, that is what it writes. Eager, it writes fp32, which is cast, as its gradient is: 6 each; RmsNorm itself has no
// casts left, and its weight reads and writes 8.
inline constexpr FusedOrEager kStreamLayerNormTraffic{{{6, 1}, {10, 2}}, {{14, 2}, {22, 3}}};
inline constexpr FusedOrEager kStreamRmsNormTraffic{{{6, 1}, {10, 2}}, {{34, 5}, {66, 9}}};
// A cast between fp32 and 16 bit, either way.
inline constexpr MemoryPass kAutocastTraffic{6, 1};
// Sum of the two gradient branches at a residual. Fused: the norm's backward reads one more operand.
inline constexpr FusedOrEager kResidualGradientTraffic{{kNothing, {2, 1}}, {kNothing, {6, 1}}};
inline constexpr FusedOrEager kStreamGradientTraffic{{kNothing, {4, 1}}, {kNothing, {12, 1}}};
inline constexpr FusedOrEager kGeluTraffic{{{4, 1}, {6, 1}}, {{4, 1}, {6, 1}}};
inline constexpr FusedOrEager kBiasGeluTraffic{{{4, 1}, {6, 1}}, {{8, 2}, {12, 2}}};
// Per element of f, out of 2f.
inline constexpr FusedOrEager kSwigluTraffic{{{6, 1}, {10, 1}}, {{10, 2}, {26, 4}}};
// Input 2, residual 2, output 2, mask 1. Eager: bias 4, dropout 5, add 6.
inline constexpr Elementwise kBiasTraffic{{4, 1}, kNothing};
inline constexpr Elementwise kDropoutTraffic{{5, 1}, {5, 1}};
inline constexpr Elementwise kResidualAddTraffic{{6, 1}, kNothing};
inline constexpr int kStreamAddBytes = 4;  // more where residual and output are fp32
inline constexpr Elementwise kFusedDropoutAddTraffic{{7, 1}, {5, 1}};
// Two kernels, one for Q and one for K.
inline constexpr FusedOrEager kRopeTraffic{{{4, 2}, {4, 2}}, {{20, 10}, {20, 10}}};
// Fused flash kernels read Q, K, V with strides; batched GEMMs need them separate.
inline constexpr Elementwise kTransposeTraffic{{4, 1}, {4, 1}};
// Per score element. Fused: read 2, write 2; dY, Y, dX. Eager: scale 4, mask 5, to fp32 6, softmax 8, back 6;
// softmax 8, scale 4, conversions 12.
inline constexpr FusedOrEager kSoftmaxTraffic{{{4, 1}, {6, 1}}, {{29, 5}, {24, 4}}};
// Merges a ring's block into the sum so far, per element of O. Forward: scale (read 2, write 2) and add (read
// 4, write 2) of all queries or of half of them, 8 on average. Backward: sums of dQ, dK and dV, half as much
// again.
inline constexpr Elementwise kContextMergeTraffic{{8, 2}, {12, 3}};
// Rotated and unrotated columns of a latent key put together; eager, those of the query too.
inline constexpr FusedOrEager kConcatenationTraffic{{{4, 1}, {4, 1}}, {{8, 2}, {8, 2}}};
// Per score of the router (a token and an expert), in bytes whatever the precision: scores are fp32. Fused:
// the score function reads 2 and writes 4; the choice reads 4, writes weights 4 and a map 1; the auxiliary
// loss reads 5. Backward: reads weights' gradient, scores and map, writes and reads a gradient, writes 2.
// Eager: 15 kernels that read and write 4 each, and two thirds of it backward.
inline constexpr FusedOrEager kRouterTraffic{{{20, 3}, {19, 2}}, {{120, 15}, {80, 10}}};
// Routing weights meet the experts' activation, per element of their width: fused into its kernel where that
// is one (the weights themselves are counted by the token); eager, one kernel more, and the weights' gradient
// one more backward.
inline constexpr FusedOrEager kExpertWeightTraffic{{kNothing, kNothing}, {{4, 1}, {8, 2}}};
// Clamps ahead of a gate, per element of f: two that read 2 and write 2, joined in 8; backward 6 each, and the halves
// joined in 8. Eager, nothing is joined forward.
//   source  NVIDIA/Megatron-LM, core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl
inline constexpr FusedOrEager kClampTraffic{{{16, 3}, {20, 3}}, {{8, 2}, {20, 3}}};
// Biases of routed experts, behind products that have none, per element of h: kernels of PyTorch expert by expert,
// in fp32 as the weights of the tokens are. Forward: a bias times the weights writes 4, its sum with the output
// reads 6 and writes 4, all are joined in 8 and cast in 6. Backward: 6 to fp32, 6 and 4 for the output's gradient;
// a product and a sum of 12 each for bias and weights. `kernels` are of one expert.
//   source  NVIDIA/Megatron-LM, core/transformer/moe/experts.py, TEGroupedMLP._apply_bias
inline constexpr Elementwise kExpertBiasTraffic{{28, 2}, {40, 5}};
inline constexpr int kExpertBiasJoins = 2;  // kernels over all experts, in either direction
// Sigmoid gate on the shared experts. Forward: a dot product reads 2; the multiplication reads 2 and writes
// 2. Backward: the multiplication 4, the gate's gradient reads 4, the gradients of its input and weight 4.
inline constexpr Elementwise kSharedGateTraffic{{6, 3}, {12, 4}};
// Two branches join, or their gradients do: read 4, write 2.
inline constexpr MemoryPass kSumTraffic{6, 1};
// Read a row, write it.
inline constexpr MemoryPass kLookupTraffic{4, 1};
inline constexpr MemoryPass kPositionTraffic{6, 1};
// To fp32 6, max 4, subtract 8, exp 8, sum 4, divide 8; scale 8, cast 6. This counts the unfused loss; a
// fused kernel moves less, by the profile's factor `loss_traffic`.
inline constexpr Elementwise kLossTraffic{{38, 6}, {14, 2}};
// The loss that Megatron-Core compiles: 11.8 and 6.1 ms for 2^30 logits on an H100, as bytes at 0.93 of its memory's
// rate (linkedin/Liger-Kernel @7097ab9c, benchmark/data/all_benchmark_data_megatron.csv). There its unfused loss
// takes 15.8 and 5.4 ms, PyTorch's over fp32 logits 8.8 and 9.0, a fused kernel 2.1 and 2.6.
inline constexpr Elementwise kCompiledLossTraffic{{34, 4}, {18, 3}};

}  // namespace stagecraft
