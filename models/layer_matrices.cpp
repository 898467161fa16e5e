#include "models/layer_matrices.hpp"

#include "models/partition.hpp"

namespace stagecraft {

namespace {

void add_attention(const TransformerSpec& model, const Widths& w, LayerMatrices& matrices) {
  const std::int64_t h = model.hidden;
  matrices.projection = h * w.output;
  if (!model.latent_attention) {
    matrices.qkv = h * w.qkv();
    return;
  }
  const LatentAttentionSpec& latent = *model.latent_attention;
  const std::int64_t key_value = w.heads * latent.nope_head_size + w.value;
  matrices.latent_down = h * (latent.query_rank + latent.kv_rank + latent.rope_head_size);
  matrices.latent_up = (latent.query_rank > 0 ? latent.query_rank : h) * w.query + latent.kv_rank * key_value;
}

}  // namespace

LayerMatrices layer_matrices(const TransformerSpec& model, LayerKind kind, const WeightSplit& split) {
  LayerMatrices matrices;
  const Widths w = widths(model, split.tensor);
  add_attention(model, w, matrices);
  if (kind == LayerKind::kDense) {
    matrices.ffn = model.hidden * (w.up + w.ffn);
    return matrices;
  }
  const ExpertWidths of_experts = expert_widths(model, split);
  const ExpertsSpec& experts = *model.experts;
  matrices.router = model.hidden * experts.count;
  matrices.shared_gate = experts.shared_gate ? model.hidden : 0;
  matrices.shared = model.hidden * (of_experts.shared_up + of_experts.shared);
  matrices.expert = model.hidden * (of_experts.up + of_experts.ffn);
  return matrices;
}

}  // namespace stagecraft
