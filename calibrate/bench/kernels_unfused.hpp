// The operators of fused_kernels.hpp as chains of simple kernels, one for each arithmetic step, as frameworks
// without fusion launch them. Each step reads its operands from memory and writes its result there.
//
// `scratch` is the caller's: scratch_bytes() of it. Steps that a framework keeps in bf16 round to bf16.
//   source   the steps: docs/op-inventory.md, eager columns.
#pragma once

#include "calibrate/bench/fused_kernels.hpp"

namespace stagecraft::unfused {

// Bytes of scratch that any chain below needs for so many elements.
[[nodiscard]] constexpr std::int64_t scratch_bytes(std::int64_t elements) {
  return 16 * elements;
}

struct Scratch {
  void* data;
  cudaStream_t stream;
};

// add bias 4, gelu 4.
void bias_gelu_forward(const Bf16* x, const Bf16* bias, Bf16* y, Rows rows, Scratch scratch);
// add bias again 4, gelu' 6, column sums of dx for the bias 2.
struct BiasGeluSums {
  float *dbias, *partials;  // column_sum_partials()
};
void bias_gelu_backward(const BiasGeluBackward& io, const BiasGeluSums& sums, Rows rows, Scratch scratch);
// silu 4, multiply 6.
void swiglu_forward(const Bf16* x, Bf16* y, Rows rows, Scratch scratch);
// dup 6, dsilu 6, silu' 6, join 8; silu(gate) is kept from the forward pass (here: computed before).
void swiglu_keep(const Bf16* x, Bf16* silu_of_gate, Rows rows, cudaStream_t stream);
struct SwigluBackward {
  const Bf16 *dy, *x, *silu_of_gate;
  Bf16* dx;
};
void swiglu_backward(const SwigluBackward& io, Rows rows, Scratch scratch);
// add bias 4, dropout 5, add residual 6.
void bias_dropout_add_forward(const BiasDropoutAdd& io, const Dropout& dropout, Rows rows, Scratch scratch);
// scale 4, mask 5, to fp32 6, softmax 8, back 6. `hidden_keys` is [queries, keys], 1 where the key is not
// seen; probabilities in fp32 stay for the backward pass.
struct SoftmaxForward {
  const Bf16* x;
  const std::uint8_t* hidden_keys;
  float* probabilities;
  Bf16* y;
};
void softmax_forward(const SoftmaxForward& io, float scale, Rows rows, Scratch scratch);
// to fp32 6, softmax' 12, back 6, scale 4.
void softmax_backward(const Bf16* dy, const float* probabilities, Bf16* dx, float scale, Rows rows,
                      Scratch scratch);
// to fp32 6, square 8, mean 4, multiply 8, back 6, weight 4.
struct RmsNormForward {
  const Bf16 *x, *weight;
  float *x_fp32, *rstd;  // kept
  Bf16 *normed, *y;      // normed kept
};
void rms_norm_forward(const RmsNormForward& io, Rows rows, Scratch scratch);
// column sums of dy * normed 4, dy * weight to fp32 6, times x 12, mean 4, dy * rstd 8, x * mean 8, subtract
// 12, back 6.
struct RmsNormBackward {
  const Bf16 *dy, *weight, *normed;
  const float *x_fp32, *rstd;
  Bf16* dx;
  float *dweight, *partials;
};
void rms_norm_backward(const RmsNormBackward& io, Rows rows, Scratch scratch);
// times cosine 4, negate half 2, join 4, times sine 4, add 6.
void rope(const Rope& io, const RopeShape& shape, Scratch scratch);
// to fp32 6, maximum 4, subtract 8, exp 8, sum 4, divide 8. Leaves the probabilities.
struct CrossEntropy {
  const Bf16* logits;
  const std::int32_t* target;
  float *probabilities, *maximum, *sum;
};
void cross_entropy_forward(const CrossEntropy& io, Rows rows, cudaStream_t stream);
// subtract 1 at the targets, scale 8, to bf16 6.
void cross_entropy_backward(const CrossEntropy& io, float gradient, Bf16* dlogits, Rows rows,
                            Scratch scratch);
// Eleven elementwise steps of 8 or 12 bytes and the cast to bf16: 102 bytes a parameter.
void adam(const AdamChunk& tensor, const AdamStep& step, Scratch scratch);
// times probability 4k, gather 4k, sum 2k + 2.
void unpermute(const Bf16* expert_rows, Bf16* tokens, const Routing& routing, Rows rows, Scratch scratch);

}  // namespace stagecraft::unfused
