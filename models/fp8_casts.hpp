// Casts of operands to fp8 or fp4, by recipe: what is read and written before a GEMM, per element of the tensor.
//
//                          one pass reads it   two passes read it     where it was gathered, or sent
//   delayed                2 + 1               2 + 1, + 1 transposed  1 + 1 for the transposed copy
//   current                2 before, for the largest value of the tensor; then as delayed
//   blockwise, mxfp8       2 + 2: along rows and along columns        nothing; 1 + 1 where it was sent
//   nvfp4                  2 before, for the largest value; 2 + 1/2   nothing; it is never sent in fp4
//                          + 1/2: along rows and along columns
//   torchao                as current
//
// Transposed copies are needed where products read one layout only (Shard::fp8_layouts). A norm of the same
// module writes fp8 itself under delayed scaling, and hands the largest value over under current scaling.
// Scales of blocks are 1/32 byte an element, in either layout, of nvfp4 1/16.
//   source  NVIDIA/TransformerEngine @00dffe23 transformer_engine/pytorch/csrc/quantizer.cpp and
//           csrc/extensions/normalization.cpp; docs/features/low_precision_training @41f6cbf1;
//           docs/examples/gemm_profiling/gemm_profiling.rst @8f2e6357 times 4 bytes an element on H200 under
//           delayed scaling, 6 under current; torchao/float8/float8_linear.py
#pragma once

#include <cstdint>

#include "models/operators.hpp"
#include "models/shard.hpp"

namespace stagecraft {

// How a tensor comes to the GEMMs that read it.
enum class Fp8Source : std::uint8_t {
  kSixteenBit,
  kNorm,      // from a fused norm of the same module, as in Transformer Engine's LayerNormLinear
  kGathered,  // in fp8, from the ranks of the tensor group: add_local_cast() was theirs
  kSent,      // in fp8, to its experts
  kProduct,   // in fp8 and in all layouts, from the product before it
};

// Does a fused norm that feeds GEMMs alone write fp8?
[[nodiscard]] bool norm_writes_fp8(const Shard& shard);

// `elements` in one layout as a GEMM of the layers reads them: their values, and with the scales of blocks.
[[nodiscard]] std::int64_t operand_bytes(std::int64_t elements, const Shard& shard);
[[nodiscard]] std::int64_t cast_bytes(std::int64_t elements, const Shard& shard);

// Bytes per weight in one layout, as weights are stored and gathered under fp8_parameters; scales of fp8 are left out.
[[nodiscard]] double fp8_weight(const Shard& shard);
// Bytes per weight of the copies that are kept of 16-bit weights.
[[nodiscard]] double fp8_weight_copies(const Shard& shard);

// A tensor before the two GEMMs that read it.
void add_cast(Ops& ops, std::int64_t elements, Fp8Source source, const Shard& shard);

// The rows of a rank before they are gathered. Under current scaling the ranks agree on the largest value.
void add_local_cast(Ops& ops, std::int64_t elements, Fp8Source source, const Shard& shard);

// Weights before the GEMM of a pass. `split` of a dense layer: tensor ranks share a matrix, and under torchao
// agree on its largest value.
struct CastWeights {
  std::int64_t count = 0;
  bool backward = false, split = false;
};
void add_weight_cast(Ops& ops, const CastWeights& weights, const Shard& shard);

// The sweep over `weights` in the first micro-batch after a step, which writes all copies.
//   source  NVIDIA/TransformerEngine, transformer_engine/pytorch/module/linear.py, is_first_microbatch.
[[nodiscard]] Op first_weight_cast(std::int64_t weights, const Shard& shard);

}  // namespace stagecraft
