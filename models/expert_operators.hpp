// The experts of a layer in place of its feed-forward block: router, dispatch, grouped GEMMs, combine, and
// shared experts beside them. The norm before and the residual after belong to the layer.
//
// Routing weights are applied in the experts' activation. The router's GEMM stays in 16 bit under fp8.
//
// Fused experts (Shard::fuses_experts): the first product ends in biases, activation and routing weights, and the
// gradient of the second one's input in the gradient of those; both keep the first product's output in 16 bit. With the
// scales of MXFP8 they write what the next products read, in both layouts; in NVFP4 16 bit, which are cast.
//   source  NVIDIA/TransformerEngine @6ce52594 transformer_engine/pytorch/ops/fused/grouped_mlp.py: grouped_gemm_glu,
//           grouped_gemm_dglu. Their times on a GB200 (marin-community/marin #7282; 64 experts of 4,096 rows, 2,560 and
//           1,280 wide): all six products 7.35 ms, 7.1 by this list.
//   source  Megatron-LM @d98e8a64 core/transformer/moe/.
//   throws  InternalError as expert_widths and routing do.
#pragma once

#include "models/operators.hpp"

namespace stagecraft {

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
