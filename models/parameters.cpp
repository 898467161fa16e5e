#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "models/layer_matrices.hpp"
#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// LayerNorm has a weight and a bias, RMSNorm a weight.
std::int64_t norm_parameters(const TransformerSpec& model, std::int64_t width) {
  return model.normalization == Normalization::kLayerNorm ? 2 * width : width;
}

// Norms over each head are on every rank, those over all heads are split with them.
std::int64_t qk_norm_parameters(const TransformerSpec& model, std::int64_t tensor) {
  switch (model.qk_norm) {
    case QkNorm::kNone:
      return 0;
    case QkNorm::kHead:
      return 2 * norm_parameters(model, model.head_size);
    case QkNorm::kWidth:
      break;
  }
  const Widths w = widths(model, tensor);
  return norm_parameters(model, w.query + w.key_value);
}

// Norms of the residual stream and of compressed vectors are on every rank.
std::int64_t norms_of_layer(const TransformerSpec& model, std::int64_t tensor) {
  const std::int64_t of_residual = model.norms == Norms::kBoth ? 4 : 2;
  std::int64_t norms = of_residual * norm_parameters(model, model.hidden) + qk_norm_parameters(model, tensor);
  if (const auto& latent = model.latent_attention)
    norms += norm_parameters(model, latent->query_rank) + norm_parameters(model, latent->kv_rank);
  return norms;
}

// Column biases are split with their outputs; the row bias is added after the collective and lives on every
// rank. `width` is the rank's part of the block.
std::int64_t block_biases(const TransformerSpec& model, std::int64_t width) {
  if (!model.biases || width == 0) return 0;
  return (is_gated(model.activation) ? 2 * width : width) + model.hidden;
}

// Biases, and the sinks of the rank's heads.
std::int64_t attention_vectors(const TransformerSpec& model, std::int64_t tensor) {
  const std::int64_t columns = model.qkv_bias ? widths(model, tensor).qkv() : 0;
  const std::int64_t sinks = model.attention_sinks ? model.heads / tensor : 0;
  return columns + (model.biases ? model.hidden : 0) + sinks;
}

// The parameters of one routed expert.
std::int64_t expert_parameters(const TransformerSpec& model, const LayerMatrices& matrices,
                               std::int64_t expert_tensor) {
  return matrices.expert() + block_biases(model, model.experts->ffn_hidden / expert_tensor);
}

// [h, 2h], column-parallel; where t does not divide h the fullest rank counts.
std::int64_t mtp_projection(const TransformerSpec& model, const WeightSplit& split) {
  return 2 * model.hidden * ceil_div(model.hidden, split.tensor);
}

// Sums over the layers, multi-token prediction and the ends; `of_layer` counts one layer.
template <class OfLayer>
std::int64_t whole_model(const TransformerSpec& model, OfLayer of_layer) {
  std::int64_t sum = embedding_parameters(model, 1);
  const LayerNumbers numbers = model.numbers();
  for (const LayerKind kind : kLayerKinds)
    if (const std::int64_t layers = numbers[kind]) sum += layers * of_layer(kind);
  if (model.mtp_layers > 0) {
    const LayerKind kind = model.mtp_kind();
    const std::int64_t beside = mtp_parameters(model, {}).all() - layer_parameters(model, kind, {}).all();
    sum += model.mtp_layers * (of_layer(kind) + beside);
  }
  return sum + (model.tied_embeddings ? norm_parameters(model, model.hidden) : head_parameters(model, 1));
}

}  // namespace

ParameterShare layer_parameters(const TransformerSpec& model, LayerKind kind, const WeightSplit& split) {
  const LayerMatrices matrices = layer_matrices(model, kind, split);
  ParameterShare share{.dense = matrices.attention() + attention_vectors(model, split.tensor) +
                                norms_of_layer(model, split.tensor)};
  if (!has_experts(kind)) {
    share.dense += matrices.ffn() + block_biases(model, model.ffn_hidden / split.tensor);
    return share;
  }
  const ExpertsSpec& experts = *model.experts;
  SC_CHECK(split.expert > 0 && experts.count % split.expert == 0, "every rank holds as many experts");
  share.dense += matrices.router.size() + (experts.router_bias ? experts.count : 0) +
                 matrices.shared_gate.size() + matrices.shared() +
                 block_biases(model, experts.shared_width() / split.tensor);
  share.experts = experts.count / split.expert * expert_parameters(model, matrices, split.expert_tensor);
  return share;
}

ParameterShare product_weights(const TransformerSpec& model, LayerKind kind, const WeightSplit& split) {
  if (in_sixteen_bit(kind)) return {};
  const LayerMatrices layer = layer_matrices(model, kind, split);
  const std::int64_t experts = has_experts(kind) ? model.experts->count / split.expert : 0;
  return {.dense = layer.attention() + layer.ffn() + layer.shared(), .experts = layer.expert() * experts};
}

ParameterShare mtp_parameters(const TransformerSpec& model, const WeightSplit& split) {
  ParameterShare share = layer_parameters(model, model.mtp_kind(), split);
  share.dense += mtp_projection(model, split) + 3 * norm_parameters(model, model.hidden);
  return share;
}

ParameterShare mtp_product_weights(const TransformerSpec& model, const WeightSplit& split) {
  ParameterShare share = product_weights(model, model.mtp_kind(), split);
  share.dense += mtp_projection(model, split);
  return share;
}

std::int64_t word_parameters(const TransformerSpec& model, std::int64_t tensor) {
  return vocabulary_share(model, tensor) * model.hidden;
}

std::int64_t embedding_parameters(const TransformerSpec& model, std::int64_t tensor) {
  const bool learned = model.position == Position::kLearned;
  return word_parameters(model, tensor) + (learned ? model.max_sequence_length * model.hidden : 0);
}

std::int64_t head_parameters(const TransformerSpec& model, std::int64_t tensor) {
  return word_parameters(model, tensor) + norm_parameters(model, model.hidden);
}

std::int64_t parameter_count(const TransformerSpec& model) {
  return whole_model(model, [&](LayerKind kind) { return layer_parameters(model, kind, {}).all(); });
}

std::int64_t active_parameter_count(const TransformerSpec& model) {
  return whole_model(model, [&](LayerKind kind) {
    const std::int64_t all = layer_parameters(model, kind, {}).all();
    if (!has_experts(kind)) return all;
    const std::int64_t idle = model.experts->count - model.experts->top_k;
    return all - idle * expert_parameters(model, layer_matrices(model, kind, {}), 1);
  });
}

}  // namespace stagecraft
