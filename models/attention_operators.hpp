// The attention core: softmax(Q K^T / sqrt(q)) V on b a/t heads, unfused or flash, alone or over context
// ranks.
//
// FLOPs are of the full square of a kernel's queries and keys, causal or not, within a window or not. Grouped key/value heads are
// read through strides, not repeated. Latent attention scores over n + r columns and has values of w.
//
// Each of c context ranks holds the chunks i and 2c-1-i of 2c of every sample, so that all of them have
// s^2/2c scores to compute.
//   ring         c blocks: the rank's own s/c queries and keys, causal, then c-1 dense ones of half as many
//                scores: all queries meet another rank's earlier chunk, or the later queries both of its
//                chunks; the shape is (s/c, s/2c) in either case. Messages carry K and V, backward dK and dV
//                too, at 16 bit; TransformerEngine sends one more but the same bytes, its first without
//                gradients and its last with nothing else. Unfused blocks skip nothing: c of (s/c, s/c).
//   all-gather   K and V of all ranks, then (s/c, s) causal; backward gathers again and scatters dK and dV.
//   all-to-all   heads in place of tokens, there and back: a/(t c) heads of the whole sample.
//   source  Korthikanti et al. (arXiv 2205.05198), section 4; Dao (arXiv 2307.08691), section 4.1; the
//           exchanges: Megatron-LM @d98e8a64, cp_comm_type p2p, all_gather and a2a.
//   throws  InternalError unless 2c divides s for the ring, c divides s, and for all-to-all a/t and k/t; the
//           resolver of plans says so first.
#pragma once

#include "models/operators.hpp"

namespace stagecraft {

void add_core_forward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind);
void add_core_backward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind);

// Share of the square of `keys` queries and keys in which each query meets itself and the window - 1 keys before
// it: w/s - (w/s)^2/2, a half where the window is as long as the sample.
[[nodiscard]] double windowed_share(double window, double keys);

}  // namespace stagecraft
