// Widths of a layer on one of `tensor` ranks: what column- and row-parallel weights keep after the split.
//
//   source  Shoeybi et al. (arXiv 1909.08053), section 3; Narayanan et al. (arXiv 2104.04473), section 2.3.
#pragma once

#include <cstdint>

#include "models/model_spec.hpp"

namespace stagecraft {

struct Widths {
  std::int64_t heads = 0;      // query heads of the rank, a/t
  std::int64_t query = 0;      // n_q = (a/t) q
  std::int64_t key_value = 0;  // n_kv = max(k/t, 1) q: of the keys, and again of the values
  std::int64_t ffn = 0;        // f/t
  std::int64_t up = 0;         // outputs of the first FFN GEMM: f/t, or 2f/t with a gate
  [[nodiscard]] std::int64_t qkv() const { return query + 2 * key_value; }
};

// throws InternalError unless t divides a and f, and one of k and t divides the other; the resolver of plans
// says so first.
[[nodiscard]] Widths widths(const TransformerSpec& model, std::int64_t tensor);

// Rows of the vocabulary on the fullest rank: ceil(V/t). V is taken as given; a framework that pads it says
// so in the model.
[[nodiscard]] std::int64_t vocabulary_share(const TransformerSpec& model, std::int64_t tensor);

}  // namespace stagecraft
