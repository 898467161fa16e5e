// How tokens reach their experts' ranks and come back, forward and backward.
//
// Every rank routes its own T' tokens, K copies of each. Ranks of an expert group e and an expert-tensor
// group et hold distinct tokens; hence sequence parallelism where t > 1. An expert sees m_e = T' e et K / E
// tokens in the mean, times the model's imbalance on the busiest rank; with a capacity factor C every expert
// sees C times the mean, padded or dropped.
//   all-to-all   copies are sorted by expert, sent to their expert's rank, gathered over et, sorted by local
//                expert; the results go back the same way. Payloads are the busiest rank's receive buffer,
//                the dispatch with a routing weight beside each copy. Counts of tokens go ahead. With
//                overlap_shared_experts the dispatch runs beside the shared experts' first product and
//                activation, the combine beside their second, and the gradients of both beside those.
//   all-gather   all ranks' tokens, weights and maps are gathered, and the copies of local experts picked;
//                results are summed into the gathered tokens and scattered back.
//   source  Megatron-LM @d98e8a64 core/transformer/moe/token_dispatcher.py and shared_experts.py; capacity:
//   Lepikhin et al. (arXiv
//           2006.16668).
//   throws  InternalError if t > 1 without sequence parallelism, or if e does not divide E.
#pragma once

#include <cstdint>

#include "models/operators.hpp"

namespace stagecraft {

inline constexpr std::int64_t kRoutingWeightBytes = 4;  // fp32

// How many tokens, or copies of them, a rank handles.
struct TokenRouting {
  std::int64_t tokens = 0;      // T', of the rank
  std::int64_t sent = 0;        // copies that leave it: T' K, or C T' K
  std::int64_t received = 0;    // copies that the busiest rank gets, before they are gathered over et
  std::int64_t experts = 0;     // E/e, of the rank
  std::int64_t per_expert = 0;  // m_e, mean of the busiest rank's experts; at least 1
  [[nodiscard]] std::int64_t rows() const { return experts * per_expert; }  // that its experts work on
};
[[nodiscard]] TokenRouting routing(const TransformerSpec& model, const Shard& shard);

void add_dispatch(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_combine(Ops& ops, const TransformerSpec& model, const Shard& shard);
// Against the direction of the forward: the results' gradient goes to the experts, the inputs' comes back.
void add_combine_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_dispatch_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
