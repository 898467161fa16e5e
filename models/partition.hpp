// Widths of a layer on one of `tensor` ranks: the part of column- and row-parallel weights after the split.
// Routed experts are split over ranks of their own.
//
//   source  Shoeybi et al. (arXiv 1909.08053), section 3; Narayanan et al. (arXiv 2104.04473), section 2.3.
#pragma once

#include <cstdint>

#include "models/model_spec.hpp"
#include "models/shard.hpp"

namespace stagecraft {

struct Widths {
  std::int64_t heads = 0;      // query heads of the rank, a/t
  std::int64_t kv_heads = 0;   // max(k/t, 1)
  std::int64_t query = 0;      // n_q = (a/t) q
  std::int64_t key_value = 0;  // n_kv = max(k/t, 1) q: of the keys, and of the values unless latent
  std::int64_t value = 0;      // width of the values: n_kv, or (a/t) w of latent attention
  std::int64_t output = 0;     // width of the core's output: n_q, or (a/t) w of latent attention
  std::int64_t ffn = 0;        // f/t
  std::int64_t up = 0;         // outputs of the first FFN GEMM: f/t, or 2f/t with a gate
  [[nodiscard]] std::int64_t qkv() const { return query + key_value + value; }
};

// throws InternalError unless t divides a, and f where a layer is dense, and one of k and t divides the
// other; the resolver of plans says so first.
[[nodiscard]] Widths widths(const TransformerSpec& model, std::int64_t tensor);

// A rank's part of a layer's experts.
struct ExpertWidths {
  std::int64_t experts = 0;    // E/e whole or split experts
  std::int64_t ffn = 0;        // f_e/et
  std::int64_t up = 0;         // f_e/et, or 2 f_e/et with a gate
  std::int64_t shared = 0;     // f_s/t
  std::int64_t shared_up = 0;  // f_s/t, or 2 f_s/t with a gate
};

// throws InternalError unless the model has experts, e divides E, et divides f_e and t divides f_s.
[[nodiscard]] ExpertWidths expert_widths(const TransformerSpec& model, const WeightSplit& split);

// d_v: columns of a value head.
[[nodiscard]] std::int64_t value_head_size(const TransformerSpec& model);

// Rows of the vocabulary on the fullest rank: ceil(V/t). V is taken as given; a framework that pads it says
// so in the model.
[[nodiscard]] std::int64_t vocabulary_share(const TransformerSpec& model, std::int64_t tensor);

}  // namespace stagecraft
