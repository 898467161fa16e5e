#include "sim/lower/stage_operators.hpp"

namespace stagecraft {

std::vector<CountedOps> stage_operators(const TransformerSpec& model, const PricingRequest& request,
                                        const StageContent& content) {
  const Shard& shard = request.shard;
  std::vector<CountedOps> all;
  for (const LayerKind kind : kLayerKinds) {
    const std::int64_t again = content.recomputed[kind];
    const std::int64_t inner = kind == model.mtp_kind() ? content.mtp_layers : 0;
    for (const bool recomputed : {false, true}) {
      const std::int64_t times = (recomputed ? again : content.layers[kind] - again) +
                                 (recomputed == content.recomputed_mtp ? inner : 0);
      if (times > 0)
        all.push_back({.layer = kind,
                       .recomputed = recomputed,
                       .times = times,
                       .ops = layer_operators(model, shard.of_layers(recomputed), kind)});
    }
  }
  if (content.embedding)
    all.push_back({.unit = UnitKind::kEmbedding, .times = 1, .ops = embedding_operators(model, shard)});
  if (content.mtp_layers > 0)
    all.push_back({.unit = UnitKind::kMtp,
                   .times = content.mtp_layers,
                   .ops = mtp_operators(model, shard.of_layers(content.recomputed_mtp))});
  if (content.head)
    all.push_back(
        {.unit = UnitKind::kHead, .times = model.heads_of_tokens(), .ops = head_operators(model, shard)});
  return all;
}

StageContent whole_content(const ParallelPlan& plan) {
  StageContent whole;
  for (const StageContent& stage : plan.stages) {
    whole.layers += stage.layers;
    whole.recomputed += stage.recomputed;
    whole.mtp_layers += stage.mtp_layers;
    whole.recomputed_mtp = whole.recomputed_mtp || stage.recomputed_mtp;
    whole.embedding = whole.embedding || stage.embedding;
    whole.head = whole.head || stage.head;
  }
  return whole;
}

}  // namespace stagecraft
