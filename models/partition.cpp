#include "models/partition.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {

namespace {

// Outputs of the first GEMM of a feed-forward block of this width.
std::int64_t gated(const TransformerSpec& model, std::int64_t ffn) {
  return is_gated(model.activation) ? 2 * ffn : ffn;
}

}  // namespace

Widths widths(const TransformerSpec& model, std::int64_t tensor) {
  SC_CHECK(tensor > 0, "a tensor group has a rank");
  SC_CHECK(model.heads % tensor == 0, "every rank has the same number of query heads");
  SC_CHECK(!model.has_dense_layers() || model.ffn_hidden % tensor == 0,
           "every rank has the same feed-forward width");
  SC_CHECK(model.kv_heads % tensor == 0 || tensor % model.kv_heads == 0,
           "key/value heads are split or replicated evenly");
  const std::int64_t heads = model.heads / tensor;
  const std::int64_t kv_heads = std::max<std::int64_t>(model.kv_heads / tensor, 1);
  const std::int64_t ffn = model.ffn_hidden / tensor;
  return {.heads = heads,
          .kv_heads = kv_heads,
          .query = heads * model.head_size,
          .key_value = kv_heads * model.head_size,
          .value = kv_heads * value_head_size(model),
          .output = heads * value_head_size(model),
          .ffn = ffn,
          .up = gated(model, ffn)};
}

ExpertWidths expert_widths(const TransformerSpec& model, const WeightSplit& split) {
  SC_CHECK(model.experts.has_value(), "the model has experts");
  const ExpertsSpec& experts = *model.experts;
  SC_CHECK(experts.count % split.expert == 0, "every expert rank holds the same number of experts");
  SC_CHECK(experts.ffn_hidden % split.expert_tensor == 0, "every rank has the same share of an expert");
  SC_CHECK(experts.shared_width() % split.tensor == 0, "every rank has the same share of shared experts");
  const std::int64_t ffn = experts.ffn_hidden / split.expert_tensor;
  const std::int64_t shared = experts.shared_width() / split.tensor;
  return {.experts = experts.count / split.expert,
          .ffn = ffn,
          .up = gated(model, ffn),
          .shared = shared,
          .shared_up = gated(model, shared)};
}

std::int64_t value_head_size(const TransformerSpec& model) {
  return model.latent_attention ? model.latent_attention->value_head_size : model.head_size;
}

std::int64_t vocabulary_share(const TransformerSpec& model, std::int64_t tensor) {
  return ceil_div(model.vocab, tensor);
}

}  // namespace stagecraft
