// The experts of a layer in place of its feed-forward block: router, dispatch, grouped GEMMs, combine, and
// shared experts beside them. The norm before and the residual after belong to the layer.
//
// Routing weights are applied in the experts' activation. The router's GEMM stays in 16 bit under fp8.
//   source  Megatron-LM @d98e8a64 core/transformer/moe/.
//   throws  InternalError as expert_widths and routing do.
#pragma once

#include "models/operators.hpp"

namespace stagecraft {

// Does Transformer Engine's grouped block run, whose products end in activation and biases?
//   source  NVIDIA/Megatron-LM, core/transformer/moe/experts.py, use_transformer_engine_op_fuser; of MXFP8 alone
[[nodiscard]] bool runs_as_one_block(const Shard& shard);

void add_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_experts_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_experts_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard);

// Parts of the forward that can be repeated alone. The shared experts add nothing where there are none.
void add_expert_activation_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_shared_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
// What RecomputeModule::kEverySecondProduct repeats of them: of the shared experts what follows their first
// product, of the routed ones all up to the activation.
void add_experts_by_operator_again(Ops& ops, const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
