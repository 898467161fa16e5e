// Memory that one GPU needs: states, and the tensors that each layer keeps for the backward pass.
//
// An inventory rather than a coefficient: every tensor has a name and a size, so that a ledger can print them.
// T tokens of the rank, T' = T/t under sequence parallelism, e bytes an element.
//
//   source  Korthikanti et al. (arXiv 2205.05198), Table 2 and eqs 1-6; Megatron-LM's
//           distributed-optimizer table.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/model_spec.hpp"
#include "models/shard.hpp"

namespace stagecraft {

// Bytes per parameter of each kind of state, before sharding.
struct StateBytes {
  std::int64_t weight = 2, gradient = 4, optimizer = 12;
  std::int64_t stepped = 4;  // bytes of the weight that the optimizer steps, master or not
  std::int64_t kept_gradient =
      4;  // bytes of the gradient that is kept for the step: not always as it was reduced
  std::int64_t gradient_copy = 0;  // fp32 gradients of the optimizer step, where they are reduced in 16 bit

  [[nodiscard]] bool has_masters() const { return stepped > weight; }  // among `optimizer`
};
// bf16 + fp32 gradients 2/4/12; fp16 + fp16 gradients 2/2/12 and a copy of 4; fp32, and autocast, 4/4/8; bf16 + bf16
// gradients 2/2/12 and a copy of 4. Moments take 2 m bytes. An optimizer with narrower moments, or one that
// steps the 16-bit weights themselves, reads gradients without a copy (Megatron-LM's precision-aware
// optimizer; PyTorch's Adam over bf16 parameters: 2/2/4). FSDP casts what it has reduced to the precision of its
// fp32 shards (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce).
[[nodiscard]] StateBytes state_bytes(const Shard& shard);
// Do masters keep 2 bytes, which with those of the bf16 weight make the fp32 one? Not beside weights in fp8.
//   source  NVIDIA/Megatron-LM, core/optimizer/__init__.py (store_param_remainders of the precision-aware
//           optimizer); NVIDIA/TransformerEngine, pytorch/optimizers/fused_adam.py.
[[nodiscard]] bool keeps_remainders(const Shard& shard);
// Are the masters the only weights that stay? They are under FSDP, which shards weights in fp32.
[[nodiscard]] bool masters_alone(const Shard& shard);

struct SavedTensor {
  std::string_view name;  // static storage
  Bytes size;

  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};
using SavedTensors = std::vector<SavedTensor>;
[[nodiscard]] Bytes total(const SavedTensors& tensors);

// Tensors that a layer keeps from forward to backward, per micro-batch, without full recompute. Tensors of
// size zero are left out.
//   dense, flash:  T'(norm inputs, column inputs: 4 e h), T e (2 n_q + 2 n_kv + up + f/t), LSE 4 T a/t, masks
//   experts:       of r = beta T' K received (token, expert) pairs, times et: inputs e r h, first products
//                  e r up_e, activations e r f_e/et; router 8 T' E; maps 16 T' K
//   every second product: e (T' h + T (n_kv + n_q + h + f)), T h in place of T f without a gate; LSE; what
//                  tensor ranks reduced
//   fp8 of Transformer Engine: a product's input takes one byte, and where something else keeps it in 16 bit
//                  (core output, router input) is one more tensor (NVIDIA/TransformerEngine #1764)
//   norms behind the blocks: e T' h of each block's output; without norms before them the residual stream itself is the
//                  products' input
//   autocast:      what is read of the residual stream in fp32, and a 16-bit copy of each weight of a product
//   MLA:           e T' of both compressed forms and of their norms; Q and K with nope + rope columns a head
[[nodiscard]] SavedTensors layer_tensors(const TransformerSpec& model, const Shard& shard,
                                         LayerKind kind = LayerKind::kDense);
// The name of that one of them which is the layer's input itself; empty where a layer without a norm before attention
// keeps a copy alone, in fp8 or gathered.
[[nodiscard]] std::string_view input_among_tensors(const TransformerSpec& model, const Shard& shard);
// Further tensors of a layer of multi-token prediction, besides its layer and its head: the ids of the
// shifted tokens, both norm inputs and the projection's input (arXiv 2412.19437, section 2.2). Under full
// recompute the embedding beside the checkpoint (Megatron-LM, multi_token_prediction.py, checkpoints both).
[[nodiscard]] SavedTensors mtp_tensors(const TransformerSpec& model, const Shard& shard);
// Kept per micro-batch in flight: token ids and the dropout mask.
[[nodiscard]] SavedTensors embedding_tensors(const TransformerSpec& model, const Shard& shard);
// Kept: inputs of the final norm and of the head, and the fp32 softmax of the logits; where the loss is fused
// their 16-bit gradient, where it is in 16 bit the logits. In chunks the input of the norm and the gradient of the
// head's input.
[[nodiscard]] SavedTensors head_tensors(const TransformerSpec& model, const Shard& shard);

// Tensors that the weight gradients of a layer need when the backward is split: the inputs of its GEMMs and
// the gradients of their outputs. For a GPT these are 32 of its 34 bytes per element of s b h; in fp8 half of
// that.
[[nodiscard]] Bytes held_for_weight_gradients(const TransformerSpec& model, const Shard& shard,
                                              LayerKind kind = LayerKind::kDense);

[[nodiscard]] Bytes head_activation(const TransformerSpec& model, const Shard& shard);
// Logits of all tokens over this rank's share of the vocabulary, in 16 bit; their gradient has the same size. None
// in chunks.
[[nodiscard]] Bytes head_logits(const TransformerSpec& model, const Shard& shard);
// Logits that a training loop keeps when it keeps what the model returned: all that the loss reads, in fp32 where the
// software casts them. None in chunks, nor where the loss itself keeps them.
[[nodiscard]] Bytes returned_logits(const TransformerSpec& model, const Shard& shard);
// What the weight gradient of the head needs when the backward is split: its input and the gradient of the logits.
// Nothing in chunks, whose forward makes it.
[[nodiscard]] Bytes held_by_head(const TransformerSpec& model, const Shard& shard);
// Tensors that live only during the loss, besides those it keeps: the logits in the forward and their
// gradient in the backward, as fp32 matrices where the software casts them. None where the loss is fused. In chunks
// the forward has the matrices of both passes for one of them, and the head's input.
//   source  Megatron-LM's vocabulary-parallel loss keeps an fp32 softmax, no logits, and its gradient is written
//           over it (megatron/core/tensor_parallel/cross_entropy.py); peak memory of its own tests
struct HeadTransient {
  Bytes forward, backward;
};
[[nodiscard]] HeadTransient head_transient(const TransformerSpec& model, const Shard& shard);
// Output of a stage, sent to the next: 2*T*h, / t under sequence parallelism, twice that under autocast.
[[nodiscard]] Bytes boundary_activation(const TransformerSpec& model, const Shard& shard);

// Transient memory of a layer while it runs, besides its saved tensors.
struct LayerTransient {
  Bytes forward;   // gathered input, scores, messages of the context ring, expert exchanges
  Bytes backward;  // the same, and the gradients in progress: at most those of one GEMM and of the residual,
                   // or those of attention's core less what the feed-forward block has let go of
  Bytes input_gradients;  // the same where weight gradients come later: the block lets go of nothing
  Bytes recomputed;       // tensors that selective recompute restores for the backward
};
[[nodiscard]] LayerTransient layer_transient(const TransformerSpec& model, const Shard& shard,
                                             LayerKind kind = LayerKind::kDense);

// Gradient of the largest weight in 16 bit, where the GEMM does not accumulate into the main gradients
// itself, and under autocast its fp32 copy; 0 otherwise.
[[nodiscard]] Bytes weight_gradient_transient(const TransformerSpec& model, const Shard& shard,
                                              LayerKind kind = LayerKind::kDense);
// One 16-bit tensor for each shape among the weights of a layer's GEMMs; 0 unless the software has them.
[[nodiscard]] Bytes gradient_placeholders(const TransformerSpec& model, const Shard& shard,
                                          LayerKind kind = LayerKind::kDense);

}  // namespace stagecraft
