#include "base/check.hpp"
#include "models/attention_operators.hpp"
#include "models/expert_operators.hpp"
#include "models/feed_forward_operators.hpp"
#include "models/norm_operators.hpp"
#include "models/operators.hpp"
#include "models/projection_operators.hpp"

namespace stagecraft {

namespace {

// Norms are part of the module of QKV and of a dense up product, but apart before latent attention and
// experts.
//   source  NVIDIA/Megatron-LM, megatron/core/models/gpt/gpt_layer_specs.py
Norm attention_norm(const TransformerSpec& model, const Shard& shard) {
  Norm norm = residual_norm("attention norm", model, shard);
  norm.feeds_products = !model.latent_attention;
  return norm;
}

Norm ffn_norm(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  Norm norm = residual_norm("ffn norm", model, shard);
  norm.feeds_products = !has_experts(kind);
  return norm;
}

// Behind a block, before what it returns is added to the residual stream.
Norm output_norm(std::string_view name, const TransformerSpec& model, const Shard& shard) {
  Norm norm = residual_norm(name, model, shard);
  norm.of_stream = false;
  return norm;
}

Norm attention_output_norm(const TransformerSpec& model, const Shard& shard) {
  return output_norm("attention output norm", model, shard);
}

Norm ffn_output_norm(const TransformerSpec& model, const Shard& shard) {
  return output_norm("ffn output norm", model, shard);
}

void add_attention_forward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  add_norm_before_forward(ops, attention_norm(model, shard), model, shard);
  add_query_key_value_forward(ops, model, shard);
  add_core_forward(ops, model, shard, kind);
  add_projection_forward(ops, model, shard);
  add_norm_behind_forward(ops, attention_output_norm(model, shard), model, shard);
  add_residual_forward(ops, model, shard);
}

void add_attention_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard,
                                  LayerKind kind) {
  add_residual_backward(ops, model, shard);
  add_norm_behind_backward(ops, attention_output_norm(model, shard), model, shard);
  add_projection_input_gradient(ops, model, shard);
  add_core_backward(ops, model, shard, kind);
  add_query_key_value_input_gradient(ops, model, shard);
  add_norm_before_backward(ops, attention_norm(model, shard), model, shard);
}

void add_ffn_forward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  add_norm_before_forward(ops, ffn_norm(model, shard, kind), model, shard);
  if (has_experts(kind)) {
    add_experts_forward(ops, model, shard);
  } else {
    add_feed_forward(ops, dense_feed_forward(model, shard), model, shard);
  }
  add_norm_behind_forward(ops, ffn_output_norm(model, shard), model, shard);
  add_residual_forward(ops, model, shard);
}

void add_ffn_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  add_residual_backward(ops, model, shard);
  add_norm_behind_backward(ops, ffn_output_norm(model, shard), model, shard);
  if (has_experts(kind)) {
    add_experts_input_gradient(ops, model, shard);
  } else {
    add_feed_forward_input_gradient(ops, dense_feed_forward(model, shard), model, shard);
  }
  add_norm_before_backward(ops, ffn_norm(model, shard, kind), model, shard);
}

Ops layer_weight_gradient(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  Ops ops;
  if (has_experts(kind)) {
    add_experts_weight_gradient(ops, model, shard);
  } else {
    add_feed_forward_weight_gradient(ops, dense_feed_forward(model, shard), shard);
  }
  add_projection_weight_gradient(ops, model, shard);
  add_query_key_value_weight_gradient(ops, model, shard);
  return ops;
}

// The block of attention has its parts within it: none of them is repeated twice.
void add_attention_again(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  if (shard.recomputes(RecomputeModule::kLayerNorm)) {
    add_norm_before_forward(ops, attention_norm(model, shard), model, shard);
  }
  if (shard.recomputes(RecomputeModule::kSelfAttention)) {
    add_query_key_value_forward(ops, model, shard);
    add_core_forward(ops, model, shard, kind);
    if (!shard.recompute_stops_early) add_projection_forward(ops, model, shard);
    return;
  }
  if (model.latent_attention && shard.recomputes(RecomputeModule::kLatentUp)) {
    add_latent_up_forward(ops, model, shard);
  }
  if (shard.repeats_core()) add_core_forward(ops, model, shard, kind);
}

// The block of experts does so as well.
void add_experts_again(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (shard.recomputes(RecomputeModule::kMoe)) return add_experts_forward(ops, model, shard);
  if (shard.recomputes(RecomputeModule::kSharedExperts)) add_shared_experts_forward(ops, model, shard);
  if (shard.recomputes(RecomputeModule::kMoeActivation)) add_expert_activation_forward(ops, model, shard);
}

// Recomputes the GEMMs whose outputs were not kept, and all other operators but the core. The last GEMM's output is
// no input within the layer, so it is not recomputed.
Ops every_second_product_again(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  SC_CHECK(!model.has_norms_behind(), "a norm behind the block would read the last GEMM's output");
  Ops ops;
  add_norm_forward(ops, attention_norm(model, shard), model, shard);
  add_key_forward(ops, model, shard);
  add_projection_product(ops, model, shard);
  add_residual_forward(ops, model, shard);
  add_norm_forward(ops, ffn_norm(model, shard, kind), model, shard);
  if (has_experts(kind))
    add_experts_by_operator_again(ops, model, shard);
  else
    add_behind_first_product(ops, dense_feed_forward(model, shard), model, shard);
  return ops;
}

// An early stop is behind the last tensor that is kept: the input of the last GEMM, or of the norm behind it.
Ops whole_again(const TransformerSpec& model, const Shard& shard, LayerKind kind, const Ops& forward) {
  if (!shard.recompute_stops_early || has_experts(kind)) return forward;
  Ops ops;
  add_attention_forward(ops, model, shard, kind);
  add_norm_before_forward(ops, ffn_norm(model, shard, kind), model, shard);
  const FeedForward block = dense_feed_forward(model, shard);
  add_feed_forward_up(ops, block, model, shard);
  if (!model.has_norms_behind()) return ops;
  add_feed_forward_down(ops, block, model, shard);
  add_norm_behind_forward(ops, ffn_output_norm(model, shard), model, shard);
  return ops;
}

Ops selected_again(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  if (shard.recomputes(RecomputeModule::kEverySecondProduct))
    return every_second_product_again(model, shard, kind);
  Ops ops;
  add_attention_again(ops, model, shard, kind);
  if (shard.recomputes(RecomputeModule::kLayerNorm)) {
    add_norm_before_forward(ops, ffn_norm(model, shard, kind), model, shard);
  }
  if (has_experts(kind)) {
    add_experts_again(ops, model, shard);
  } else if (shard.recomputes(RecomputeModule::kMlp)) {
    const FeedForward block = dense_feed_forward(model, shard);
    add_feed_forward_up(ops, block, model, shard);
    if (!shard.recompute_stops_early) add_feed_forward_down(ops, block, model, shard);
  }
  return ops;
}

}  // namespace

LayerOps layer_operators(const TransformerSpec& model, const Shard& whole, LayerKind kind) {
  SC_CHECK(!has_experts(kind) || model.experts, "a layer with experts is one of a model with experts");
  const Shard shard = shard_of_layer(whole, kind);
  LayerOps layer;
  add_attention_forward(layer.forward, model, shard, kind);
  add_ffn_forward(layer.forward, model, shard, kind);
  layer.recompute = shard.recompute == Recompute::kFull ? whole_again(model, shard, kind, layer.forward)
                                                        : selected_again(model, shard, kind);
  add_ffn_input_gradient(layer.input_gradient, model, shard, kind);
  add_attention_input_gradient(layer.input_gradient, model, shard, kind);
  layer.weight_gradient = layer_weight_gradient(model, shard, kind);
  if (shard.precision != whole.precision)
    for (Ops* ops : {&layer.forward, &layer.recompute, &layer.input_gradient, &layer.weight_gradient})
      for (Op& op : *ops) op.precision = op.precision.value_or(shard.precision);
  return layer;
}

}  // namespace stagecraft
