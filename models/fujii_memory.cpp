#include "models/fujii_memory.hpp"

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {

std::optional<FujiiEstimate> fujii_estimate(const TransformerSpec& model, const FujiiLayout& layout) {
  SC_CHECK(layout.tensor >= 1 && layout.pipeline >= 1 && layout.context >= 1 && layout.data >= 1,
           "degrees are at least 1");
  if (model.experts || model.latent_attention || !is_gated(model.activation) || model.norms != Norms::kBefore)
    return std::nullopt;
  const std::int64_t h = model.hidden, f = model.ffn_hidden;
  const std::int64_t layers = ceil_div(model.layers, layout.pipeline);
  const std::int64_t attention = 2 * h * (model.heads + model.kv_heads) * model.head_size;
  const std::int64_t words = model.vocab * h * (model.tied_embeddings ? 1 : 2);
  FujiiEstimate estimate;
  estimate.parameters =
      (attention + 3 * h * f) * layers / layout.tensor + 2 * h * layers + words / layout.tensor + h;
  const std::int64_t sharded = layout.distributed_optimizer ? layout.data : 1;
  estimate.state = Bytes(6 * estimate.parameters + 12 * estimate.parameters / sharded);
  const std::int64_t row = 12 * h + 4 * h * model.kv_heads / model.heads + 8 * f;
  estimate.activations = Bytes(layout.sequence * layout.micro_batch * row * layers * layout.pipeline /
                               (layout.tensor * layout.context));
  return estimate;
}

}  // namespace stagecraft
