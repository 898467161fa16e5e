// The linear layers around the attention core: from the residual stream to queries, keys and values, and from
// the core's output back, with RoPE and the norms of heads or latent vectors.
//
// Grouped heads have one QKV projection. Latent attention projects down on every rank (on T' tokens under
// sequence parallelism), normalises the latent vectors, gathers them instead of the hidden ones, and projects
// up to the heads of the rank. Without a query rank the query is projected from the hidden vectors directly.
//   source  Shoeybi et al. (arXiv 1909.08053), section 3; DeepSeek-AI (arXiv 2405.04434), section 2.1;
//           Megatron-LM @d98e8a64 core/transformer/multi_latent_attention.py.
#pragma once

#include "models/operators.hpp"

namespace stagecraft {

void add_query_key_value_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
// Adds the operators for keys of grouped heads, norms of heads and RoPE, where the outputs of the query and value
// GEMMs are kept.
void add_key_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_query_key_value_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_query_key_value_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);

// Adds the up projections of latent attention, RoPE and concatenation, with the gathers before them.
void add_latent_up_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);

// The projection, and its GEMM alone, where the sum over the tensor ranks is kept.
void add_projection_product(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_projection_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_projection_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_projection_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
