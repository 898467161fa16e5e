#include "models/partition.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {

Widths widths(const TransformerSpec& model, std::int64_t tensor) {
  SC_CHECK(tensor > 0, "a tensor group has a rank");
  SC_CHECK(model.heads % tensor == 0, "every rank has the same number of query heads");
  SC_CHECK(model.ffn_hidden % tensor == 0, "every rank has the same feed-forward width");
  SC_CHECK(model.kv_heads % tensor == 0 || tensor % model.kv_heads == 0,
           "key/value heads are split or replicated evenly");
  const std::int64_t ffn = model.ffn_hidden / tensor;
  return {.heads = model.heads / tensor,
          .query = model.heads / tensor * model.head_size,
          .key_value = std::max<std::int64_t>(model.kv_heads / tensor, 1) * model.head_size,
          .ffn = ffn,
          .up = model.activation == Activation::kSwiglu ? 2 * ffn : ffn};
}

std::int64_t vocabulary_share(const TransformerSpec& model, std::int64_t tensor) {
  return (model.vocab + tensor - 1) / tensor;
}

}  // namespace stagecraft
