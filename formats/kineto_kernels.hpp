// Purpose of a trace's kernel: a GEMM, attention, a collective, by its operator and its name.
//
//   source  names of kernels: cuBLAS (`…gemm…`, `nvjet…`, `cutlass…`, splitKreduce), FlashAttention and cuDNN
//           (`flash`, `fmha`, `sdpa`), NCCL (`ncclKernel…`, `ncclDevKernel…`), PyTorch's own templates
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "formats/kineto.hpp"

namespace stagecraft {

enum class WorkKind : std::uint8_t {
  kProduct,    // GEMMs, batched ones too
  kAttention,  // fused attention
  kMemory,     // norms, activations, softmax, casts: whatever is none of the others
  kLoss,
  kOptimizer,  // the step, and norms of gradients
  kCommunication,
  kCopy,  // copies and settings of memory
};
inline constexpr std::array<std::string_view, 7> kWorkKindNames = {
    "gemm", "attention", "norms and elementwise", "loss", "optimizer", "communication", "copies"};

// Does the name of a kernel, or of an operator, in lower case, say so?
[[nodiscard]] bool names_attention(std::string_view name);
[[nodiscard]] bool names_loss(std::string_view name);
[[nodiscard]] bool names_optimizer(std::string_view name);

[[nodiscard]] WorkKind work_kind(const KinetoTrace& trace, const KinetoKernel& kernel);

// C (m x n) = A (m x k) B (k x n), `batch` times, as the operators of models/ count: m tokens and n outputs
// of a forward GEMM.
struct KinetoProduct {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::optional<GemmLayout> layout;  // cuBLAS's, by strides, else by the name of the kernel
  std::string dtype;                 // of a sample: "bf16" "fp16" "fp32" "tf32" "e4m3" "e5m2"; else PyTorch's

  friend bool operator==(const KinetoProduct&, const KinetoProduct&) = default;
};

// The GEMM of aten::mm, addmm, bmm, baddbmm, linear or _scaled_mm with shapes; nullopt for anything else.
[[nodiscard]] std::optional<KinetoProduct> product_of(const KinetoTrace& trace, const KinetoKernel& kernel);

// A collective in the terms of nccl-tests: the whole buffer of an all-reduce, the whole output of an
// all-gather, the whole input of a reduce-scatter or all-to-all, one message.
struct KinetoTraffic {
  std::optional<CollectiveKind> kind;  // nullopt: barriers, gathers, reductions to one rank, several at once
  std::optional<Bytes> size;           // nullopt: not recorded
  int ranks = 0;                       // 0: not recorded
};

// requires WorkKind::kCommunication.
[[nodiscard]] KinetoTraffic traffic_of(const KinetoTrace& trace, const KinetoKernel& kernel);

}  // namespace stagecraft
