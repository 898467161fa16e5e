// cuDNN's fused attention, through its graph interface in C: the kernel that trainers run, forward and
// backward.
//
// cuDNN has no call named attention: it is given the graph of matrix products, pointwise steps and reductions
// that attention is, recognises it and answers with an engine. What it does not recognise or support on this
// device throws Unmeasurable with cuDNN's own words.
//   source   the patterns that its flash engines accept: NVIDIA cudnn-frontend, docs/operations/Attention.md,
//            and the cuDNN backend API reference (operation descriptors).
#pragma once

#include <cuda_bf16.h>

#include <memory>

#include "calibrate/bench/attention_shapes.hpp"
#include "calibrate/bench/harness.hpp"

namespace stagecraft {

// All [batch, sequence, heads, head_size], dense; statistics are log-sum-exp [batch, heads, sequence] in
// fp32.
struct AttentionOperands {
  __nv_bfloat16 *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr;
  float* statistics = nullptr;
  __nv_bfloat16 *d_o = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;  // backward only
};

class CudnnAttention {
 public:
  // Builds graph and plan and allocates its workspace. The operands stay the caller's and must outlive this.
  CudnnAttention(Harness& harness, const AttentionPoint& shape, const AttentionOperands& operands);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  void enqueue(cudaStream_t stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] float attention_scale(const AttentionPoint& shape);  // 1 / sqrt(head_size)

}  // namespace stagecraft
