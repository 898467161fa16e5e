#include <algorithm>

#include "base/check.hpp"
#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// LayerNorm has a weight and a bias, RMSNorm a weight.
std::int64_t norm_parameters(const TransformerSpec& model) {
  return model.normalization == Normalization::kLayerNorm ? 2 * model.hidden : model.hidden;
}

std::int64_t vocabulary_matrix(const TransformerSpec& model, std::int64_t tensor) {
  return vocabulary_share(model, tensor) * model.hidden;
}

}  // namespace

ParameterShare layer_parameters(const TransformerSpec& model, LayerKind kind, const WeightSplit& split_ways) {
  SC_CHECK(kind == LayerKind::kDense, "layers with experts are not counted here");
  const Widths w = widths(model, split_ways.tensor);
  const std::int64_t split = model.hidden * (w.qkv() + w.query + w.up + w.ffn);
  // Column biases are split with their outputs; row biases are added after the collective and live on every
  // rank.
  const std::int64_t biases = model.biases ? w.qkv() + w.up + 2 * model.hidden : 0;
  return {.dense = split + biases + 2 * norm_parameters(model), .experts = 0};
}

ParameterShare mtp_parameters(const TransformerSpec& model, const WeightSplit& split) {
  return layer_parameters(model, model.mtp_kind(), split);
}

std::int64_t embedding_parameters(const TransformerSpec& model, std::int64_t tensor) {
  const bool learned = model.position == Position::kLearned;
  return vocabulary_matrix(model, tensor) + (learned ? model.max_sequence_length * model.hidden : 0);
}

std::int64_t head_parameters(const TransformerSpec& model, std::int64_t tensor) {
  return vocabulary_matrix(model, tensor) + norm_parameters(model);
}

std::int64_t parameter_count(const TransformerSpec& model) {
  const std::int64_t head = model.tied_embeddings ? norm_parameters(model) : head_parameters(model, 1);
  return model.layers * layer_parameters(model, LayerKind::kDense, {}).all() +
         embedding_parameters(model, 1) + head;
}

std::int64_t active_parameter_count(const TransformerSpec& model) {
  return parameter_count(model);
}

LayerKind TransformerSpec::kind_of(std::int64_t layer) const {
  SC_CHECK(layer >= 0 && layer < layers, "a layer of the model");
  if (!experts) return LayerKind::kDense;
  return std::ranges::binary_search(experts->dense_layers, layer) ? LayerKind::kDense : LayerKind::kExperts;
}

std::int64_t TransformerSpec::layers_of(LayerKind kind) const {
  const std::int64_t dense = experts ? static_cast<std::int64_t>(experts->dense_layers.size()) : layers;
  return kind == LayerKind::kDense ? dense : layers - dense;
}

}  // namespace stagecraft
