#include "base/check.hpp"
#include "models/attention_operators.hpp"
#include "models/elementwise.hpp"
#include "models/norm_operators.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

struct Linears {
  Linear qkv, projection, up, down;
};

Linears linears(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  const std::int64_t t = shard.tokens(), h = model.hidden;
  return {.qkv = {.name = "qkv", .tokens = t, .out = w.qkv(), .in = h, .bias = model.biases},
          .projection = {.name = "projection", .tokens = t, .out = h, .in = w.query, .bias = model.biases},
          .up = {.name = "ffn up", .tokens = t, .out = w.up, .in = h, .bias = model.biases},
          .down = {.name = "ffn down", .tokens = t, .out = h, .in = w.ffn, .bias = model.biases}};
}

// How Q, K, V and the core's output change their order in memory.
struct Transposition {
  std::int64_t split = 0, heads = 0;  // elements; 0 = by strides inside the kernels
};

Transposition transposition(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  const bool unfused = shard.attention == Attention::kUnfused;
  return {.split = unfused || !shard.fused_kernels ? shard.tokens() * w.qkv() : 0,
          .heads = unfused ? shard.tokens() * w.query : 0};
}

void add_transpose(Ops& ops, std::string_view name, std::int64_t elements, const Shard& shard) {
  if (elements > 0) add_memory(ops, name, elements, kTransposeTraffic.forward, shard);
}

void add_rope(Ops& ops, Pass pass, const TransformerSpec& model, const Shard& shard) {
  if (model.position != Position::kRope) return;
  const Widths w = widths(model, shard.tensor);
  add_memory(ops, "rope", shard.tokens() * (w.query + w.key_value), pass, shard);
}

const Elementwise& activation_traffic(const TransformerSpec& model, const Shard& shard) {
  if (model.activation == Activation::kSwiglu) return kSwigluTraffic.of(shard);
  return (model.biases ? kBiasGeluTraffic : kGeluTraffic).of(shard);
}

void add_activation(Ops& ops, Pass pass, const TransformerSpec& model, const Shard& shard) {
  add_memory(ops, "activation", shard.tokens() * widths(model, shard.tensor).ffn, pass, shard);
}

// Bias, dropout and the residual, after a row-parallel linear layer.
void add_residual_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t elements = shard.local_tokens() * model.hidden;
  const std::string_view name = model.dropout ? "dropout add" : "residual add";
  if (shard.fused_kernels) {
    const Elementwise& fused = model.dropout ? kFusedDropoutAddTraffic : kResidualAddTraffic;
    return add_memory(ops, name, elements, fused.forward, shard);
  }
  Pass pass = kResidualAddTraffic.forward;
  const auto join = [&pass](const Elementwise& part) {
    pass.bytes += part.forward.bytes;
    pass.kernels += part.forward.kernels;
  };
  if (model.biases) join(kBiasTraffic);
  if (model.dropout) join(kDropoutTraffic);
  add_memory(ops, name, elements, pass, shard);
}

void add_residual_backward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t elements = shard.local_tokens() * model.hidden;
  if (model.dropout) add_memory(ops, "dropout add", elements, kDropoutTraffic.backward, shard);
}

void add_attention_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Linears linear = linears(model, shard);
  const Transposition order = transposition(model, shard);
  add_norm_forward(ops, "attention norm", model, shard);
  add_gather(ops, "qkv gather", model.hidden, shard, Beside::kNothing);
  add_forward(ops, linear.qkv, shard);
  add_transpose(ops, "qkv split", order.split, shard);
  add_rope(ops, kRopeTraffic.of(shard).forward, model, shard);
  add_core_forward(ops, model, shard);
  add_transpose(ops, "head transposition", order.heads, shard);
  add_forward(ops, linear.projection, shard);
  add_reduce(ops, "projection reduce", model.hidden, shard, Beside::kNothing);
  add_residual_forward(ops, model, shard);
}

void add_ffn_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Linears linear = linears(model, shard);
  add_norm_forward(ops, "ffn norm", model, shard);
  add_gather(ops, "ffn gather", model.hidden, shard, Beside::kNothing);
  add_forward(ops, linear.up, shard);
  add_activation(ops, activation_traffic(model, shard).forward, model, shard);
  add_forward(ops, linear.down, shard);
  add_reduce(ops, "ffn reduce", model.hidden, shard, Beside::kNothing);
  add_residual_forward(ops, model, shard);
}

// Under sequence parallelism both gradients of a row-parallel weight wait for dY to be gathered; the input of
// a column-parallel one is gathered again for its weight gradient, behind the input-gradient GEMM.
void add_ffn_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Linears linear = linears(model, shard);
  add_residual_backward(ops, model, shard);
  add_gather(ops, "ffn gradient gather", model.hidden, shard, Beside::kNothing);
  add_input_gradient(ops, linear.down, shard);
  add_activation(ops, activation_traffic(model, shard).backward, model, shard);
  add_gather(ops, "ffn input gather", model.hidden, shard, Beside::kWeightGradient);
  add_input_gradient(ops, linear.up, shard);
  add_reduce(ops, "ffn gradient reduce", model.hidden, shard, Beside::kWeightGradient);
  add_norm_backward(ops, "ffn norm", model, shard, Residual::kSummed);
}

void add_attention_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Linears linear = linears(model, shard);
  const Transposition order = transposition(model, shard);
  add_residual_backward(ops, model, shard);
  add_gather(ops, "projection gradient gather", model.hidden, shard, Beside::kNothing);
  add_input_gradient(ops, linear.projection, shard);
  add_transpose(ops, "head transposition", order.heads, shard);
  add_core_backward(ops, model, shard);
  add_rope(ops, kRopeTraffic.of(shard).backward, model, shard);
  add_transpose(ops, "qkv split", order.split, shard);
  add_gather(ops, "qkv input gather", model.hidden, shard, Beside::kWeightGradient);
  add_input_gradient(ops, linear.qkv, shard);
  add_reduce(ops, "qkv gradient reduce", model.hidden, shard, Beside::kWeightGradient);
  add_norm_backward(ops, "attention norm", model, shard, Residual::kSummed);
}

Ops weight_gradient(const TransformerSpec& model, const Shard& shard) {
  const Linears linear = linears(model, shard);
  Ops ops;
  for (const Linear* each : {&linear.down, &linear.up, &linear.projection, &linear.qkv}) {
    add_weight_gradient(ops, *each, shard);
  }
  return ops;
}

Ops recompute(const TransformerSpec& model, const Shard& shard, const Ops& forward) {
  Ops ops;
  if (shard.recompute == Recompute::kFull) ops = forward;
  // Flash recomputes the scores inside its backward kernel: nothing is left to repeat.
  if (shard.recompute == Recompute::kSelective && shard.attention == Attention::kUnfused) {
    add_core_forward(ops, model, shard);
  }
  return ops;
}

}  // namespace

LayerOps layer_operators(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  SC_CHECK(kind == LayerKind::kDense, "layers with experts are not listed here");
  LayerOps layer;
  add_attention_forward(layer.forward, model, shard);
  add_ffn_forward(layer.forward, model, shard);
  layer.recompute = recompute(model, shard, layer.forward);
  add_ffn_input_gradient(layer.input_gradient, model, shard);
  add_attention_input_gradient(layer.input_gradient, model, shard);
  layer.weight_gradient = weight_gradient(model, shard);
  return layer;
}

LayerOps mtp_operators(const TransformerSpec& model, const Shard& shard) {
  LayerOps ops;
  add_norm_forward(ops.forward, "mtp norm", model, shard);
  return ops;
}

}  // namespace stagecraft
