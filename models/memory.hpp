// Bytes that one GPU needs: states, and activations kept for the backward pass.
//
//   source  Korthikanti et al. (arXiv 2205.05198), Table 2 and eqs 1-6; Megatron-LM's
//           distributed-optimizer table.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "models/model_spec.hpp"
#include "models/shard.hpp"

namespace stagecraft {

// Bytes per parameter of each kind of state, before sharding.
struct StateBytes {
  std::int64_t weight = 2, gradient = 4, optimizer = 12;
};
// bf16 + fp32 gradients 2/4/12; fp16 + fp16 gradients 2/2/16 (fp32 copy); fp32 4/4/8; bf16 + bf16 gradients
// 2/2/12.
[[nodiscard]] StateBytes state_bytes(Precision precision, Precision gradient);

struct LayerActivation {
  Bytes kept;       // from forward to backward, per micro-batch
  Bytes transient;  // one layer's full activations, live while it is recomputed; 0 without full recompute
};
[[nodiscard]] LayerActivation layer_activation(const TransformerSpec& model, const Shard& shard);
// Kept per micro-batch in flight: token ids and the dropout mask.
[[nodiscard]] Bytes embedding_activation(const TransformerSpec& model, const Shard& shard);
// Kept: inputs of the final norm and of the head, softmax of the logits in fp32.
[[nodiscard]] Bytes head_activation(const TransformerSpec& model, const Shard& shard);
// Live during the loss alone: logits and their gradient.
[[nodiscard]] Bytes head_transient(const TransformerSpec& model, const Shard& shard);
// Output of a stage, sent to the next: 2*T*h, / t under sequence parallelism.
[[nodiscard]] Bytes boundary_activation(const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
