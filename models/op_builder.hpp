// The bricks of operator lists: a GEMM, an element-wise kernel, a collective, with their bytes.
//
//   e   bytes of an activation: 4 in fp32, else 2. Element-wise counts are written at 16 bit and double in
//       fp32.
//   o   bytes of a GEMM operand: 4 in fp32, 1 in fp8, else 2; a GEMM writes e.
//
// Bytes are HBM traffic, each operand read or written once (docs/op-inventory.md).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/fp8_casts.hpp"
#include "models/operators.hpp"
#include "models/shard.hpp"

namespace stagecraft {

// 2 m n k for each GEMM.
[[nodiscard]] Flops gemm_flops(const GemmShape& shape);
[[nodiscard]] std::int64_t element_bytes(Precision precision);
[[nodiscard]] std::int64_t operand_bytes(Precision precision);

// A weight [out, in] applied to `tokens` rows.
struct Linear {
  std::string_view name;
  std::int64_t tokens = 0, out = 0, in = 0;
  bool bias = false;
  bool sixteen_bit = false;   // even where the other GEMMs run in fp8
  bool weights_cast = false;  // under autocast: a product over other tokens has done it
  Fp8Source input = Fp8Source::kSixteenBit, gradient = Fp8Source::kSixteenBit;  // gradient of the output
};

// The shard for a GEMM that stays in 16 bit under fp8, or for its gathered tensors.
//   source  DeepSeek-AI (arXiv 2412.19437), section 3.3: head and router; Megatron-LM's output layer is none
//           of Transformer Engine's, torchtitan's recipes leave `output` out.
[[nodiscard]] Shard sixteen_bit(Shard shard);
// The shard for a layer of a kind: some stay in 16 bit.
[[nodiscard]] Shard shard_of_layer(const Shard& shard, LayerKind kind);
// The shard for the head: its input is in 16 bit, and gathered in one where layers gather theirs in chunks.
[[nodiscard]] Shard shard_of_head(const Shard& shard);
// Tokens of each chunk of head and loss: all but the last alike.
[[nodiscard]] std::vector<std::int64_t> loss_chunks(const Shard& shard);

// Under sequence parallelism tensor ranks gather the inputs of column-parallel GEMMs, and the gradients after
// row-parallel ones, in fp8: each rank casts its own rows before. Otherwise such a tensor comes as `local`.
//   source  Transformer Engine's grad_output_preprocess and gather_along_first_dim; torchao's
//           Float8ColwiseParallel.
[[nodiscard]] Fp8Source gathered_or(Fp8Source local, const Shard& shard);

// The passes of a linear layer: (tokens, out, in) TN, (tokens, in, out) NN, (out, in, tokens) NT. In fp8 the
// input, or the output's gradient, is cast first. `add_weight_gradient` accumulates into gradients of
// shard.gradient: inside the GEMM, or by one more kernel without gradient_accumulation_fusion.
void add_forward(Ops& ops, const Linear& linear, const Shard& shard);
void add_input_gradient(Ops& ops, const Linear& linear, const Shard& shard);
void add_weight_gradient(Ops& ops, const Linear& linear, const Shard& shard);

// Weights of several experts, each applied to rows of its own, in one kernel.
struct GroupedLinear {
  std::int64_t experts = 0;
  Linear each;
};

// The passes of `experts` linear layers, in shapes and bytes `experts` times those of one.
void add_forward(Ops& ops, const GroupedLinear& linear, const Shard& shard);
void add_input_gradient(Ops& ops, const GroupedLinear& linear, const Shard& shard);
void add_weight_gradient(Ops& ops, const GroupedLinear& linear, const Shard& shard);

// Products of the attention core stay in 16 bit under fp8.
//   source  NVIDIA/TransformerEngine, transformer_engine/common/recipe: fp8_dpa is off by default; torchao converts
//           linear layers alone.
[[nodiscard]] Op batched_gemm(std::string_view name, const GemmShape& shape, const Shard& shard);

// Traffic of one pass over one element at 16 bit, and how many kernels share it. No kernels: the pass does
// nothing.
struct MemoryPass {
  int bytes = 0;
  int kernels = 1;
  friend constexpr MemoryPass operator+(const MemoryPass& a, const MemoryPass& b) {
    return {.bytes = a.bytes + b.bytes, .kernels = a.kernels + b.kernels};
  }
};
[[nodiscard]] Op memory_op(std::string_view name, std::int64_t elements, MemoryPass pass, const Shard& shard);
void add_memory(Ops& ops, std::string_view name, std::int64_t elements, MemoryPass pass,
                const Shard& shard);  // unless no kernels

// Rows of `width` elements moved one by one: `rows` of them read and written together.
[[nodiscard]] Op permutation_op(std::string_view name, std::int64_t rows, std::int64_t width,
                                const Shard& shard);

// A collective, `payload` in nccl-tests' convention.
[[nodiscard]] Op collective_op(std::string_view name, CollectiveKind kind, Bytes payload, Beside beside,
                               CommGroup group = CommGroup::kTensor);

// The collectives around tensor-parallel weights on activations of T * width. All add nothing when t = 1.
enum class GatherOf : std::uint8_t {
  kInput,
  kNormedInput,  // from a norm of the same module
  kInputAgain,   // for the weight gradient, as the forward has kept the rank's rows only
  kGradient,
};
struct Gather {
  std::string_view name;
  GatherOf what = GatherOf::kInput;
  std::int64_t width = 0;
  Beside beside = Beside::kNothing;
};
// With sequence parallelism only.
//   source  of recipes with scales of blocks: NVIDIA/TransformerEngine, transformer_engine/pytorch/module/
//           linear.py, the usages of its quantizers
void add_gather(Ops& ops, const Gather& gather, const Shard& shard);
void add_reduce(Ops& ops, std::string_view name, std::int64_t width, const Shard& shard,
                Beside beside);  // RS with SP

// Overlap of a gather before, or a reduction after, a GEMM: with overlap_tensor its chunks.
// TransformerEngine's user buffers chunk gathers and scatters but no all-reduce: sequence parallelism only.
[[nodiscard]] Beside beside_next_gemm(const Shard& shard);
[[nodiscard]] Beside beside_previous_gemm(const Shard& shard);
// Overlap of a backward collective with the weight-gradient GEMM of its layer, where software has one.
[[nodiscard]] Beside beside_weight_gradient(const Shard& shard);

}  // namespace stagecraft
