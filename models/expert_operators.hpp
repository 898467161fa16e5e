// A layer's experts in place of its feed-forward block: router, exchange, grouped products, exchange, shared
// experts. The norm before and the residual behind are the layer's.
//
// Every rank routes its own T' tokens, K copies of each. Ranks of an expert group e and an expert-tensor
// group et hold distinct tokens; hence sequence parallelism where t > 1. An expert sees m_e = T' e et K / E
// tokens in the mean, times the model's imbalance on the busiest rank; with a capacity factor C every expert
// sees C times the mean, padded or dropped.
//   all-to-all   copies are sorted by expert, sent to their expert's rank, gathered over et, sorted by local
//                expert; the results go back the same way. Payloads are the busiest rank's receive buffer,
//                the dispatch with a weight of 4 bytes a copy. Counts of tokens go ahead.
//   all-gather   all ranks' tokens, scores and maps are gathered, and the copies of local experts picked;
//                results are summed into the gathered tokens and scattered back.
// Routing weights are applied in the experts' activation.
//   source  Megatron-LM @d98e8a64 core/transformer/moe/token_dispatcher.py; capacity: Lepikhin et al. (arXiv
//           2006.16668).
//   throws  InternalError if t > 1 without sequence parallelism, and as expert_widths.
#pragma once

#include "models/operators.hpp"

namespace stagecraft {

// How many tokens, or copies of them, a rank handles.
struct Routing {
  std::int64_t tokens = 0;      // T', of the rank
  std::int64_t sent = 0;        // copies that leave it: T' K, or C T' K
  std::int64_t received = 0;    // copies that the busiest rank gets, before they are gathered over et
  std::int64_t per_expert = 0;  // m_e, mean of the busiest rank's experts; at least 1
};
[[nodiscard]] Routing routing(const TransformerSpec& model, const Shard& shard);

void add_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_experts_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_experts_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);

// Parts of the forward that can be repeated alone. The shared experts add nothing where there are none.
void add_expert_activation_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_shared_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
