// A feed-forward block that all tokens pass: the dense layer's, or the shared experts of a layer with
// experts.
//
// Column-parallel up, activation, row-parallel down, with their tensor collectives. The norm before and the
// residual after belong to the layer.
//   source  Shoeybi et al. (arXiv 1909.08053), section 3; the collectives of sequence parallelism:
//           Korthikanti et al. (arXiv 2205.05198), section 4.2.2.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/elementwise.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"

namespace stagecraft {

struct FeedForwardNames {
  std::string_view up, activation, down;
  std::string_view gather, reduce;                                  // forward
  std::string_view gradient_gather, input_gather, gradient_reduce;  // backward
};

struct FeedForward {
  FeedForwardNames names;
  bool normed = false;  // it has a norm before it, which belongs to the module of `up`
  Linear up, down;
};

[[nodiscard]] FeedForward dense_feed_forward(const TransformerSpec& model, const Shard& shard);
// The shared experts as one block of width f_s on the T tokens.
[[nodiscard]] FeedForward shared_feed_forward(const TransformerSpec& model, const Shard& shard);

void add_feed_forward(Ops& ops, const FeedForward& block, const TransformerSpec& model, const Shard& shard);
// The two halves of the block: up to the activation, and the down projection with its collective.
void add_feed_forward_up(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                         const Shard& shard);
void add_feed_forward_down(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                           const Shard& shard);
// What follows the first GEMM up to the activation: of a gated block its up.
void add_behind_first_product(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                              const Shard& shard);
void add_feed_forward_input_gradient(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                                     const Shard& shard);
void add_feed_forward_weight_gradient(Ops& ops, const FeedForward& block, const Shard& shard);

// Per element of the block's width. The kernel adds the bias of `up` where the model has biases.
[[nodiscard]] Elementwise activation_traffic(const TransformerSpec& model, const Shard& shard);
// The same with clamps as kernels of their own ahead of it, or without.
[[nodiscard]] Elementwise activation_traffic(const TransformerSpec& model, const Shard& shard, bool clamps);

}  // namespace stagecraft
