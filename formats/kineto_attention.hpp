// Fused attention in a trace: over what, by which implementation.
//
//   source   arguments of operators: pytorch/pytorch aten/src/ATen/native/native_functions.yaml;
//            FlashAttention's flash_attn_interface.py
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "formats/kineto.hpp"

namespace stagecraft {

// Is the operator fused attention, whatever its kernel is called: a backward, or not? nullopt: it is none.
[[nodiscard]] std::optional<bool> attention_is_backward(std::string_view name);

// Fused attention over whole samples: `queries` x `keys` scores for each of `batch` x `heads`.
struct KinetoAttention {
  bool backward = false;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_size = 0, value_size = 0;
  bool causal = false;
  std::string implementation;  // "fa2", "fa3", "cudnn", "efficient", as profiles call them
  std::string dtype;           // "bf16", ...; else PyTorch's

  friend bool operator==(const KinetoAttention&, const KinetoAttention&) = default;
};

// The attention of a kernel, or why it has none, as it is counted: "attention without shapes".
using AttentionOrReason = std::variant<KinetoAttention, std::string>;
[[nodiscard]] AttentionOrReason attention_of(const KinetoTrace& trace, const KinetoKernel& kernel);

}  // namespace stagecraft
