#include "models/layer_matrices.hpp"

#include "models/partition.hpp"

namespace stagecraft {

namespace {

void add_attention(const TransformerSpec& model, const Widths& w, LayerMatrices& matrices) {
  const std::int64_t h = model.hidden;
  matrices.projection = {.out = h, .in = w.output};
  if (!model.latent_attention) {
    matrices.qkv = {.out = w.qkv(), .in = h};
    return;
  }
  const LatentAttentionSpec& latent = *model.latent_attention;
  matrices.query_down = {.out = latent.query_rank, .in = h};
  matrices.key_value_down = {.out = latent.kv_rank + latent.rope_head_size, .in = h};
  matrices.query_up = {.out = w.query, .in = latent.query_rank > 0 ? latent.query_rank : h};
  matrices.key_value_up = {.out = w.heads * latent.nope_head_size + w.value, .in = latent.kv_rank};
}

}  // namespace

LayerMatrices layer_matrices(const TransformerSpec& model, LayerKind kind, const WeightSplit& split) {
  LayerMatrices matrices;
  const std::int64_t h = model.hidden;
  const Widths w = widths(model, split.tensor);
  add_attention(model, w, matrices);
  if (!has_experts(kind)) {
    matrices.up = {.out = w.up, .in = h};
    matrices.down = {.out = h, .in = w.ffn};
    return matrices;
  }
  const ExpertWidths of_experts = expert_widths(model, split);
  const ExpertsSpec& experts = *model.experts;
  matrices.router = {.out = experts.count, .in = h};
  if (experts.shared_gate) matrices.shared_gate = {.out = 1, .in = h};
  matrices.shared_up = {.out = of_experts.shared_up, .in = h};
  matrices.shared_down = {.out = h, .in = of_experts.shared};
  matrices.expert_up = {.out = of_experts.up, .in = h};
  matrices.expert_down = {.out = h, .in = of_experts.ffn};
  return matrices;
}

}  // namespace stagecraft
