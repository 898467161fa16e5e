#include "models/layer_matrices.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {

namespace {

std::int64_t part(std::int64_t whole, std::int64_t ways) {
  SC_CHECK(ways > 0 && whole % ways == 0, "every rank holds the same part of a weight");
  return whole / ways;
}

// Up (and gate) and down of a feed-forward block.
std::int64_t block(const TransformerSpec& model, std::int64_t width) {
  return (model.activation == Activation::kSwiglu ? 3 : 2) * model.hidden * width;
}

void add_attention(const TransformerSpec& model, std::int64_t tensor, LayerMatrices& matrices) {
  const std::int64_t h = model.hidden, heads = part(model.heads, tensor);
  if (!model.latent_attention) {
    matrices.qkv = h * qkv_columns(model, tensor);
    matrices.projection = h * heads * model.head_size;
    return;
  }
  const LatentAttentionSpec& latent = *model.latent_attention;
  const std::int64_t query = heads * (latent.nope_head_size + latent.rope_head_size);
  const std::int64_t key_value = heads * (latent.nope_head_size + latent.value_head_size);
  matrices.latent_down = h * (latent.query_rank + latent.kv_rank + latent.rope_head_size);
  matrices.latent_up = (latent.query_rank > 0 ? latent.query_rank : h) * query + latent.kv_rank * key_value;
  matrices.projection = h * heads * latent.value_head_size;
}

}  // namespace

std::int64_t qkv_columns(const TransformerSpec& model, std::int64_t tensor) {
  SC_CHECK(model.kv_heads % tensor == 0 || tensor % model.kv_heads == 0,
           "key/value heads are split or replicated evenly");
  const std::int64_t kv_heads = std::max<std::int64_t>(model.kv_heads / tensor, 1);
  return (part(model.heads, tensor) + 2 * kv_heads) * model.head_size;
}

LayerMatrices layer_matrices(const TransformerSpec& model, LayerKind kind, const WeightSplit& split) {
  LayerMatrices matrices;
  add_attention(model, split.tensor, matrices);
  if (kind == LayerKind::kDense) {
    matrices.ffn = block(model, part(model.ffn_hidden, split.tensor));
    return matrices;
  }
  SC_CHECK(model.experts.has_value(), "only a model with experts has layers of them");
  const ExpertsSpec& experts = *model.experts;
  matrices.router = model.hidden * experts.count;
  matrices.shared_gate = experts.shared_gate ? model.hidden : 0;
  matrices.shared = block(model, part(experts.shared_width(), split.tensor));
  matrices.expert = block(model, part(experts.ffn_hidden, split.expert_tensor));
  return matrices;
}

}  // namespace stagecraft
