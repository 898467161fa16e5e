#include "models/memory.hpp"

#include "models/op_builder.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// Tensors between norm 1 and the residual after the projection, in bytes.
std::int64_t attention_tensors(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  const std::int64_t e = element_bytes(shard.precision);
  const std::int64_t residual = shard.local_tokens() * model.hidden;
  const std::int64_t norm_and_qkv_input = 2 * e * residual;
  const std::int64_t query_key_value_output = e * shard.tokens() * (w.qkv() + w.query);
  const std::int64_t mask = model.dropout ? residual : 0;
  return norm_and_qkv_input + query_key_value_output + mask;
}

std::int64_t ffn_tensors(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  const std::int64_t e = element_bytes(shard.precision);
  const std::int64_t residual = shard.local_tokens() * model.hidden;
  const std::int64_t norm_and_up_input = 2 * e * residual;
  const std::int64_t up_output_and_down_input = e * shard.tokens() * (w.up + w.ffn);
  // Eager SwiGLU also keeps silu(gate) for the product's backward.
  const bool eager_gate = model.activation == Activation::kSwiglu && !shard.fused_kernels;
  const std::int64_t mask = model.dropout ? residual : 0;
  return norm_and_up_input + up_output_and_down_input + (eager_gate ? e * shard.tokens() * w.ffn : 0) + mask;
}

// What the core keeps beside Q, K, V and O.
std::int64_t core_tensors(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  if (shard.attention == Attention::kFlash) return 4 * shard.tokens() * w.heads;  // log-sum-exp, fp32
  if (shard.recompute == Recompute::kSelective) return 0;
  const std::int64_t scores = shard.micro_batch * w.heads * shard.sequence * shard.sequence;
  const std::int64_t e = element_bytes(shard.precision);
  return scores * (model.dropout ? 2 * e + 1 : e);  // softmax output; dropout output and mask
}

std::int64_t logits(const TransformerSpec& model, const Shard& shard) {
  return shard.tokens() * vocabulary_share(model, shard.tensor);
}

}  // namespace

StateBytes state_bytes(Precision precision, Precision gradient) {
  if (precision == Precision::kFp32) return {.weight = 4, .gradient = 4, .optimizer = 8};
  const std::int64_t g = element_bytes(gradient);
  // fp16 gradients are unscaled into an fp32 copy that lives beside the optimizer's states.
  const bool gradient_copy = precision == Precision::kFp16 && g == 2;
  return {.weight = 2, .gradient = g, .optimizer = gradient_copy ? 16 : 12};
}

LayerActivation layer_activation(const TransformerSpec& model, const Shard& shard) {
  const Bytes whole(attention_tensors(model, shard) + core_tensors(model, shard) + ffn_tensors(model, shard));
  if (shard.recompute != Recompute::kFull) return {.kept = whole, .transient = Bytes(0)};
  return {.kept = boundary_activation(model, shard), .transient = whole};
}

Bytes embedding_activation(const TransformerSpec& model, const Shard& shard) {
  const std::int64_t token_ids = 8 * shard.tokens();
  return Bytes(token_ids + (model.dropout ? shard.local_tokens() * model.hidden : 0));
}

Bytes head_activation(const TransformerSpec& model, const Shard& shard) {
  const std::int64_t norm_and_head_input =
      2 * element_bytes(shard.precision) * shard.local_tokens() * model.hidden;
  return Bytes(norm_and_head_input + 4 * logits(model, shard));  // softmax in fp32
}

Bytes head_transient(const TransformerSpec& model, const Shard& shard) {
  return Bytes(2 * element_bytes(shard.precision) * logits(model, shard));  // logits and their gradient
}

Bytes boundary_activation(const TransformerSpec& model, const Shard& shard) {
  return Bytes(element_bytes(shard.precision) * shard.local_tokens() * model.hidden);
}

}  // namespace stagecraft
