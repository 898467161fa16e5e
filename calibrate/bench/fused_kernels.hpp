// Our fused kernels, forward and backward: what a training framework launches between the GEMMs.
//
// Shapes: T tokens, H elements a row; rows are dense and start at multiples of 16 bytes, so H is a multiple
// of 8. bf16 unless the type says fp32. All arithmetic is fp32, one rounding at the end. Outputs never
// overlap inputs except where "in place" is said. Every launcher enqueues and returns: no allocation, no
// waiting.
//   throws   CudaError on a refused launch, std::invalid_argument on a width that no kernel covers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace stagecraft {

using Bf16 = __nv_bfloat16;

struct Rows {
  std::int64_t tokens = 0, hidden = 0;
  [[nodiscard]] std::int64_t elements() const { return tokens * hidden; }
};

inline constexpr std::int64_t kWidestRow = 16384;  // of softmax and the norms, which keep a row in registers

// y = gelu(x + bias), tanh form; dx = dy * gelu'(x + bias).
void bias_gelu_forward(const Bf16* x, const Bf16* bias, Bf16* y, Rows rows, cudaStream_t stream);
struct BiasGeluBackward {
  const Bf16 *dy, *x, *bias;
  Bf16* dx;
};
void bias_gelu_backward(const BiasGeluBackward& io, Rows rows, cudaStream_t stream);

// x is [T, 2H]: gate, then up. y = silu(gate) * up; dx is [T, 2H].
void swiglu_forward(const Bf16* x, Bf16* y, Rows rows, cudaStream_t stream);
void swiglu_backward(const Bf16* dy, const Bf16* x, Bf16* dx, Rows rows, cudaStream_t stream);

// y = residual + mask * (x + bias) / (1 - p); one mask byte an element, made by dropout_draws().
struct Dropout {
  std::uint64_t seed = 0;
  std::uint32_t threshold = 0;  // 65536 * p
  [[nodiscard]] float scale() const { return 65536.0F / static_cast<float>(65536U - threshold); }
};
struct BiasDropoutAdd {
  const Bf16 *x, *bias, *residual;
  Bf16* y;
  std::uint8_t* mask;
};
void bias_dropout_add_forward(const BiasDropoutAdd& io, const Dropout& dropout, Rows rows,
                              cudaStream_t stream);
// dx = mask * dy / (1 - p); the gradient of the residual is dy itself.
struct DropoutBackward {
  const Bf16* dy;
  const std::uint8_t* mask;
  Bf16* dx;
};
void dropout_backward(const DropoutBackward& io, const Dropout& dropout, Rows rows, cudaStream_t stream);

// Rows of scores [.., queries, keys], queries = keys = rows.hidden: y = softmax(scale * x) over keys <=
// query, zero beyond. dx = scale * y * (dy - sum(dy * y)).
void causal_softmax_forward(const Bf16* x, Bf16* y, float scale, Rows rows, cudaStream_t stream);
struct SoftmaxBackward {
  const Bf16 *dy, *y;
  Bf16* dx;
};
void causal_softmax_backward(const SoftmaxBackward& io, float scale, Rows rows, cudaStream_t stream);

// Layer norm: y = (x - mean) / sqrt(var + 1e-5) * weight + bias, keeps mean and 1/sqrt(..) of a token.
// RMS norm: mean and bias null: y = x / sqrt(mean(x^2) + 1e-5) * weight.
struct NormForward {
  const Bf16 *x, *weight, *bias;
  Bf16* y;
  float *mean, *rstd;
};
void norm_forward(const NormForward& io, Rows rows, cudaStream_t stream);
// dx, and the gradients of weight and bias [H] in fp32, by partial sums of a fixed number of blocks that a
// second kernel adds in a fixed order. `residual_gradient` is added to dx where it is not null.
struct NormBackward {
  const Bf16 *dy, *x, *weight, *residual_gradient;
  const float *mean, *rstd;
  Bf16* dx;
  float *dweight, *dbias;  // dbias null for RMS norm
  float* partials;         // norm_backward_partials() floats
};
[[nodiscard]] std::int64_t norm_backward_partials(Rows rows, int sms);
void norm_backward(const NormBackward& io, Rows rows, int sms, cudaStream_t stream);

// Column sums of dy [T, H] into fp32 [H]: the gradient of a bias. `partials` as for the norms.
[[nodiscard]] std::int64_t column_sum_partials(Rows rows);
void column_sum(const Bf16* dy, float* sums, float* partials, Rows rows, cudaStream_t stream);
struct ColumnDot {
  const Bf16 *dy, *times;  // null: 1
};
void column_dot(const ColumnDot& io, float* sums, float* partials, Rows rows, cudaStream_t stream);

// Rotary positions on [T, heads, size]: element i of the first half turns with element i of the second by the
// angle whose cosine and sine are tables [T, size/2]. Backward turns the other way.
struct Rope {
  const Bf16* x;
  const float *cosine, *sine;
  Bf16* y;
};
struct RopeShape {
  std::int64_t tokens = 0, heads = 0, head_size = 0;  // head_size a multiple of 16
  bool backward = false;
};
void rope(const Rope& io, const RopeShape& shape, cudaStream_t stream);

// Cross entropy over a shard of the vocabulary. Forward, one pass: of each row its maximum, the sum of
// exp(x - maximum) and the logit of the target (0 where the target lies outside the shard): what
// tensor-parallel ranks reduce. Backward writes (exp(x - log_sum) - [target]) * gradient over the logits, in
// place.
struct CrossEntropyForward {
  const Bf16* logits;
  const std::int32_t* target;  // index within the shard, or outside [0, H)
  float *maximum, *sum, *target_logit;
};
void cross_entropy_forward(const CrossEntropyForward& io, Rows rows, cudaStream_t stream);
struct CrossEntropyBackward {
  Bf16* logits;
  const std::int32_t* target;
  const float *maximum, *sum;
  float gradient;
};
void cross_entropy_backward(const CrossEntropyBackward& io, Rows rows, cudaStream_t stream);

// Adam (Kingma & Ba, with decoupled weight decay) over many tensors in one launch: fp32 gradient, weight and
// moments, and a bf16 copy of the new weight where `copy` is not null. A chunk is a run of kAdamChunk
// elements or the rest of a tensor, a multiple of 8.
struct AdamChunk {
  const float* gradient;
  float *weight, *first, *second;
  Bf16* copy;
  std::int64_t elements;
};
inline constexpr std::int64_t kAdamChunk = 65536;
struct AdamStep {
  float rate = 1e-4F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, decay = 0.1F;
  float correction1 = 1, correction2 = 1;  // 1 - beta^step
};
void adam(const AdamChunk* chunks_on_device, int chunks, const AdamStep& step, cudaStream_t stream);

// sqrt(sum g^2) of fp32, in two stages with a fixed order: the same bits every time on the same device.
inline constexpr int kNormPartials = 1024;
void gradient_norm(const float* gradient, std::int64_t elements, double* partials, float* norm,
                   cudaStream_t stream);

void cast_to_bf16(const float* from, Bf16* to, std::int64_t elements, cudaStream_t stream);
void cast_to_float(const Bf16* from, float* to, std::int64_t elements, cudaStream_t stream);
// main += gradient, bf16 into fp32.
void accumulate_gradient(const Bf16* gradient, float* main, std::int64_t elements, cudaStream_t stream);

// [T, H] to [H, T]; T and H multiples of 64.
void transpose(const Bf16* from, Bf16* to, Rows rows, cudaStream_t stream);
// [T, heads, size] to [heads, T, size].
void transpose_heads(const Bf16* from, Bf16* to, const RopeShape& shape, cudaStream_t stream);

// Mixture of experts: slot[t * k + j] is the row that copy j of token t has among the T * k expert rows.
struct Routing {
  const std::int32_t* slot;
  const float* probability;  // [T, k]; null: 1
  int k = 1;
};
void permute(const Bf16* tokens, Bf16* expert_rows, const Routing& routing, Rows rows, cudaStream_t stream);
void unpermute(const Bf16* expert_rows, Bf16* tokens, const Routing& routing, Rows rows, cudaStream_t stream);
// Gradient of unpermute: of the expert rows, and of the probabilities [T, k] (dot products).
struct UnpermuteBackward {
  const Bf16 *dy, *expert_rows;
  Bf16* dexpert_rows;
  float* dprobability;
};
void unpermute_backward(const UnpermuteBackward& io, const Routing& routing, Rows rows, cudaStream_t stream);

// Rows of table [V, H] by token id; ids outside [0, V) give zeros (another rank has them).
struct Embedding {
  const std::int32_t* ids;  // [T]
  std::int64_t vocabulary = 0;
};
void embedding_forward(const Bf16* table, Bf16* y, const Embedding& embedding, Rows rows,
                       cudaStream_t stream);
// table_gradient (fp32) += rows of dy, one block a distinct id, its tokens in ascending order: deterministic.
struct EmbeddingBackward {
  const Bf16* dy;
  float* table_gradient;
  const std::int32_t *ids, *begin,
      *order;  // distinct ids [n]; order[begin[i], begin[i+1]) = tokens of ids[i]
  int distinct = 0;
};
void embedding_backward(const EmbeddingBackward& io, Rows rows, cudaStream_t stream);

}  // namespace stagecraft
