#include "models/feed_forward_operators.hpp"

#include "models/norm_operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

constexpr FeedForwardNames kDenseNames{.up = "ffn up",
                                       .activation = "activation",
                                       .down = "ffn down",
                                       .gather = "ffn gather",
                                       .reduce = "ffn reduce",
                                       .gradient_gather = "ffn gradient gather",
                                       .input_gather = "ffn input gather",
                                       .gradient_reduce = "ffn gradient reduce"};
constexpr FeedForwardNames kSharedNames{.up = "shared up",
                                        .activation = "shared activation",
                                        .down = "shared down",
                                        .gather = "shared gather",
                                        .reduce = "shared reduce",
                                        .gradient_gather = "shared gradient gather",
                                        .input_gather = "shared input gather",
                                        .gradient_reduce = "shared gradient reduce"};

FeedForward feed_forward(const FeedForwardNames& names, bool normed, std::int64_t up, std::int64_t down,
                         const TransformerSpec& model, const Shard& shard) {
  const std::int64_t t = shard.tokens(), h = model.hidden;
  return {.names = names,
          .normed = normed,
          .up = {.name = names.up,
                 .tokens = t,
                 .out = up,
                 .in = h,
                 .bias = model.biases,
                 .input = gathered_or(normed ? from_norm(model, shard) : Fp8Source::kSixteenBit, shard)},
          .down = {.name = names.down,
                   .tokens = t,
                   .out = h,
                   .in = down,
                   .bias = model.biases,
                   .gradient = gathered_or(Fp8Source::kSixteenBit, shard)}};
}

// Up to the activation, with all columns of the up product or some of them.
void add_up_forward(Ops& ops, const FeedForward& block, const Linear& up, const TransformerSpec& model,
                    const Shard& shard) {
  add_gather(ops,
             {.name = block.names.gather,
              .what = block.normed ? gather_of_norm(model, shard) : GatherOf::kInput,
              .width = model.hidden,
              .beside = beside_next_gemm(shard)},
             shard);
  add_forward(ops, up, shard);
  add_memory(ops, block.names.activation, block.down.tokens * block.down.in,
             activation_traffic(model, shard).forward, shard);
}

}  // namespace

Elementwise activation_traffic(const TransformerSpec& model, const Shard& shard) {
  return activation_traffic(model, shard, clamps_apart(model, shard));
}

Elementwise activation_traffic(const TransformerSpec& model, const Shard& shard, bool clamps) {
  const bool fused = fuses_activation(model, shard);
  const FusedOrEager& gelu = model.biases ? kBiasGeluTraffic : kGeluTraffic;
  const Elementwise& alone = (is_gated(model.activation) ? kSwigluTraffic : gelu).of(fused);
  if (!clamps) return alone;
  const Elementwise& clamp = kClampTraffic.of(fused);
  return {.forward = alone.forward + clamp.forward, .backward = alone.backward + clamp.backward};
}

FeedForward dense_feed_forward(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  return feed_forward(kDenseNames, model.has_norms_before(), w.up, w.ffn, model, shard);
}

FeedForward shared_feed_forward(const TransformerSpec& model, const Shard& shard) {
  const ExpertWidths w = expert_widths(model, shard.weight_split());
  return feed_forward(kSharedNames, false, w.shared_up, w.shared, model, shard);
}

void add_feed_forward_up(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                         const Shard& shard) {
  add_up_forward(ops, block, block.up, model, shard);
}

void add_feed_forward_down(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                           const Shard& shard) {
  add_forward(ops, block.down, shard);
  add_reduce(ops, block.names.reduce, model.hidden, shard, beside_previous_gemm(shard));
}

void add_feed_forward(Ops& ops, const FeedForward& block, const TransformerSpec& model, const Shard& shard) {
  add_feed_forward_up(ops, block, model, shard);
  add_feed_forward_down(ops, block, model, shard);
}

void add_behind_first_product(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                              const Shard& shard) {
  Linear second = block.up;
  second.out -= block.down.in;
  if (second.out > 0) return add_up_forward(ops, block, second, model, shard);
  add_memory(ops, block.names.activation, block.down.tokens * block.down.in,
             activation_traffic(model, shard).forward, shard);
}

// Under sequence parallelism both gradients of a row-parallel weight wait for the all-gather of dY. The input
// of a column-parallel weight is gathered again for its weight gradient, after the input-gradient GEMM.
void add_feed_forward_input_gradient(Ops& ops, const FeedForward& block, const TransformerSpec& model,
                                     const Shard& shard) {
  const Elementwise activation = activation_traffic(model, shard);
  add_gather(ops,
             {.name = block.names.gradient_gather,
              .what = GatherOf::kGradient,
              .width = model.hidden,
              .beside = beside_next_gemm(shard)},
             shard);
  add_input_gradient(ops, block.down, shard);
  add_memory(ops, block.names.activation, block.down.tokens * block.down.in, activation.backward, shard);
  add_gather(ops,
             {.name = block.names.input_gather,
              .what = GatherOf::kInputAgain,
              .width = model.hidden,
              .beside = beside_weight_gradient(shard)},
             shard);
  add_input_gradient(ops, block.up, shard);
  add_reduce(ops, block.names.gradient_reduce, model.hidden, shard, beside_weight_gradient(shard));
}

void add_feed_forward_weight_gradient(Ops& ops, const FeedForward& block, const Shard& shard) {
  add_weight_gradient(ops, block.down, shard);
  add_weight_gradient(ops, block.up, shard);
}

}  // namespace stagecraft
