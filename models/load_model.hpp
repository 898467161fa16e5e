// A model from YAML.
#pragma once

#include "base/yaml.hpp"
#include "models/model_spec.hpp"

namespace stagecraft {

// Reads `model` of a scenario (docs/scenario.md) and finishes it. Defaults by family: gpt: kv_heads = heads,
// head_size = hidden/heads, ffn_hidden = 4 hidden, gelu, layernorm, learned, tied, biases, dropout. llama:
// swiglu, rmsnorm, rope, untied, no biases, no dropout; ffn_hidden is required. A vocabulary that is not given
// is the family's, and experts without a width have the model's; both are warned of. `experts: {count, top_k,
// groups, top_groups, ffn_hidden, shared, shared_ffn_hidden, shared_gate, router_bias, first_dense_layers |
// dense_layers, capacity_factor, pad_to_capacity, imbalance}`, `latent_attention: {query_rank, kv_rank, nope_head_size,
// rope_head_size, value_head_size}`, `sliding_window: {tokens, full_every | full_layers}`, `mtp_layers`, `qkv_bias`,
// `norms`, `qk_norm`, `attention_sinks` and `clamped_activation` are optional. Of abstract stages the three times are
// required. After a mistake the value is harmless, and its diagnostics say not to use it.
[[nodiscard]] ModelSpec load_model(YamlMap& map);

}  // namespace stagecraft
