// Exchange of tokens with the ranks of their experts, forward and backward.
//
// Every rank routes its own T' tokens, K copies of each. Ranks of an expert group e and an expert-tensor
// group et hold distinct tokens; hence sequence parallelism where t > 1. An expert gets m_e = T' e et K / E
// tokens on average, times the model's imbalance on the busiest rank. A capacity factor C drops what exceeds
// C times the mean; where experts are padded to it, every expert gets C times the mean.
//   all-to-all   copies are sorted by expert, sent to their expert's rank, gathered over et, sorted by local
//                expert; the results go back the same way. Payloads are the busiest rank's receive buffer,
//                the dispatch with a routing weight beside each copy. Counts of tokens go ahead. With
//                overlap_shared_experts the dispatch runs beside the shared experts' first product and
//                activation, the combine beside their second, and the gradients of both beside those.
//   all-gather   all ranks' tokens, weights and maps are gathered, and the copies of local experts picked;
//                results are summed into the gathered tokens and scattered back.
//   node-aware   a token goes once to each node that holds one of its experts, to the rank of its sender's
//                place there, and from that once to each rank: T' D_n copies between nodes and T' D_e inside
//                them (token_spread.hpp; times the imbalance, or C), each with 8 bytes that say whence, and
//                forward with number and weight of each choice. Tokens are not sorted before; ranks copy them
//                to their experts and sum results of one token before these go back, summed again on the way.
//   fp8          what goes to the experts, forward and backward, has one byte an element and an fp32 scale
//                for each 128 of a row; what comes back has 16 bit. It is cast before it is sent; where the
//                products are in 16 bit it is cast back behind, where in fp8 only the copy for the weight
//                gradient is still to make (op_builder.hpp).
//   source  Megatron-LM @d98e8a64 core/transformer/moe/token_dispatcher.py and shared_experts.py; capacity:
//           Lepikhin et al. (arXiv 2006.16668). Node-aware: DeepSeek-AI (arXiv 2412.19437), section 3.2.2,
//           and DeepEP @008e399e csrc/kernels/internode.cu, which has what lies beside a token. Fp8: the
//           same report, section 3.3.3: dispatch, and the gradient of the combine, in fp8; both combines not.
//   throws  InternalError if t > 1 without sequence parallelism, or if e does not divide E.
#pragma once

#include <cstdint>

#include "models/operators.hpp"

namespace stagecraft {

inline constexpr std::int64_t kRoutingWeightBytes = 4;  // fp32

// Bytes of one token as sent to experts, without its metadata.
[[nodiscard]] std::int64_t dispatched_row_bytes(const TransformerSpec& model, const Shard& shard);
// Bytes of one token as a rank keeps it for the GEMMs of its experts.
[[nodiscard]] std::int64_t expert_input_row_bytes(const TransformerSpec& model, const Shard& shard);

// Are exchanged tokens kept by recompute by operator? Those of PyTorch's own all-to-all are.
[[nodiscard]] bool keeps_exchanged(const Shard& shard);

// Tokens of all ranks that share the experts, as the all-gather dispatcher brings them to each.
[[nodiscard]] std::int64_t gathered_tokens(const Shard& shard);

// Copies on the busiest expert rank over the even share: the model's imbalance, at most e min(K, E/e) / K,
// since a token goes to an expert once. A single rank has all tokens, however uneven the routing.
[[nodiscard]] double busiest_rank(const ExpertsSpec& experts, const Shard& shard);

// (token, expert) pairs at the experts of the busiest rank: beta T' K et, at most C T' K et.
[[nodiscard]] std::int64_t received_pairs(const TransformerSpec& model, const Shard& shard);

// Numbers of tokens, and of copies, that a rank handles.
struct TokenRouting {
  std::int64_t tokens = 0;      // T', of the rank
  std::int64_t sent = 0;        // copies that leave it: T' K, padded C T' K
  std::int64_t received = 0;    // copies that the busiest rank gets, before they are gathered over et
  std::int64_t arrived = 0;     // and arrived there: the source of its experts' rows
  std::int64_t whole = 0;       // tokens of the rank, as often as the busiest rank is busier than the mean
  std::int64_t experts = 0;     // E/e, of the rank
  std::int64_t per_expert = 0;  // m_e, mean of the busiest rank's experts; at least 1
  [[nodiscard]] std::int64_t rows() const { return experts * per_expert; }  // rows that its experts compute
};
[[nodiscard]] TokenRouting routing(const TransformerSpec& model, const Shard& shard);

void add_dispatch(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_combine(Ops& ops, const TransformerSpec& model, const Shard& shard);
// Backward of the combine: the gradient of the results goes to the experts, that of the inputs comes back.
void add_combine_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_dispatch_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
