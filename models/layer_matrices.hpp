// The matrices of one layer. Parameters, FLOPs and the memory of weight gradients follow from them: a weight is
// two FLOPs per token.
//
//   source  Shoeybi et al. (arXiv 1909.08053), section 3: columns and rows split `tensor` ways; DeepSeek-AI
//           (arXiv 2405.04434), section 2.1: latent attention; Fedus et al. (arXiv 2101.03961), section 2.1:
//           router [E, h]. Megatron-LM's placement: down projections, router and shared gate on every rank.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "models/model_spec.hpp"
#include "models/shard.hpp"

namespace stagecraft {

// Output and input width of a GEMM.
struct WeightShape {
  std::int64_t out = 0, in = 0;

  [[nodiscard]] std::int64_t size() const { return out * in; }  // parameters
  friend auto operator<=>(const WeightShape&, const WeightShape&) = default;
};

// Those that a layer does not have are empty.
struct LayerMatrices {
  WeightShape qkv;  // [n_q + 2 n_kv, h]; not of latent attention
  // Of latent attention: [q_r, h] and [kv_r + r, h]; [a(n + r), q_r], or [a(n + r), h] without a query rank, and
  // [a(n + w), kv_r].
  WeightShape query_down, key_value_down, query_up, key_value_up;
  WeightShape projection;              // output projection of attention
  WeightShape up, down;                // dense block
  WeightShape router, shared_gate;     // [E, h], [1, h]
  WeightShape shared_up, shared_down;  // shared experts, as one block of width f_s
  WeightShape expert_up, expert_down;  // one routed expert

  // Parameters of each part.
  [[nodiscard]] std::int64_t latent_down() const { return query_down.size() + key_value_down.size(); }
  [[nodiscard]] std::int64_t latent_up() const { return query_up.size() + key_value_up.size(); }
  [[nodiscard]] std::int64_t attention() const {
    return qkv.size() + latent_down() + latent_up() + projection.size();
  }
  [[nodiscard]] std::int64_t ffn() const { return up.size() + down.size(); }
  [[nodiscard]] std::int64_t shared() const { return shared_up.size() + shared_down.size(); }
  [[nodiscard]] std::int64_t expert() const { return expert_up.size() + expert_down.size(); }

  // The matrices of linear layers: all but router and gate, whose products are code of their own.
  [[nodiscard]] std::array<WeightShape, 10> linear() const {
    return {qkv,        query_down, key_value_down, query_up,  key_value_up,
            projection, up,         down,           shared_up, shared_down};
  }
  [[nodiscard]] std::array<WeightShape, 2> linear_of_expert() const { return {expert_up, expert_down}; }
};

// A rank's part of each matrix; with a split of one, of the whole model.
//   throws InternalError where `split` does not divide what it splits; the resolver of plans says so first.
[[nodiscard]] LayerMatrices layer_matrices(const TransformerSpec& model, LayerKind kind,
                                           const WeightSplit& split);

}  // namespace stagecraft
