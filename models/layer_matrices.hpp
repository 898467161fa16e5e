// Parameter counts of the matrices of one layer. Parameters and FLOPs both follow from them: a weight is two
// FLOPs per token.
//
//   source  Shoeybi et al. (arXiv 1909.08053), section 3: columns and rows split `tensor` ways; DeepSeek-AI
//           (arXiv 2405.04434), section 2.1: latent attention; Fedus et al. (arXiv 2101.03961), section 2.1:
//           router [E, h]. Megatron-LM's placement: down projections, router and shared gate on every rank.
#pragma once

#include <cstdint>

#include "models/model_spec.hpp"
#include "models/shard.hpp"

namespace stagecraft {

struct LayerMatrices {
  std::int64_t qkv = 0;          // [n_q + 2 n_kv, h]; not of latent attention
  std::int64_t latent_down = 0;  // [q_r, h] and [kv_r + r, h]
  std::int64_t latent_up = 0;    // [a(n + r), q_r], or [a(n + r), h] without a query rank; [a(n + w), kv_r]
  std::int64_t projection = 0;   // output projection of attention
  std::int64_t ffn = 0;          // dense block
  std::int64_t router = 0;       // [E, h]
  std::int64_t shared_gate = 0;  // [1, h]
  std::int64_t shared = 0;       // shared experts, as one block of width f_s
  std::int64_t expert = 0;       // one routed expert

  [[nodiscard]] std::int64_t attention() const { return qkv + latent_down + latent_up + projection; }
  friend bool operator==(const LayerMatrices&, const LayerMatrices&) = default;
};

// A rank's part of each matrix; with a split of one, of the whole model.
//   throws InternalError where `split` does not divide what it splits; the resolver of plans says so first.
[[nodiscard]] LayerMatrices layer_matrices(const TransformerSpec& model, LayerKind kind,
                                           const WeightSplit& split);

}  // namespace stagecraft
