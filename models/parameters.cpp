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

std::int64_t layer_parameters(const TransformerSpec& model, std::int64_t tensor) {
  const Widths w = widths(model, tensor);
  const std::int64_t split = model.hidden * (w.qkv() + w.query + w.up + w.ffn);
  // Column biases are split with their outputs; row biases are added after the collective and live on every
  // rank.
  const std::int64_t biases = model.biases ? w.qkv() + w.up + 2 * model.hidden : 0;
  return split + biases + 2 * norm_parameters(model);
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
  return model.layers * layer_parameters(model, 1) + embedding_parameters(model, 1) + head;
}

}  // namespace stagecraft
