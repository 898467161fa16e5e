// What an operator of a trace does in a layer, on how much, and what it moves through memory.
//
// Shapes are those that the trace recorded of the operator that launched the kernel (record_shapes=True);
// what it does not tell is not guessed: nothing is counted of an operator that is not in the table, of
// tensors of unknown type, of a list of more than 30 tensors (PyTorch writes none of it).
//
//   bytes    each operand read or written once, at its own type; masks one byte an element
//   source   arguments of operators: pytorch/pytorch aten/src/ATen/native/native_functions.yaml;
//   FlashAttention's
//            flash_attn_interface.py; names of functions of NVIDIA/apex and Megatron-LM
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "formats/kineto.hpp"

namespace stagecraft {

enum class OperatorRole : std::uint8_t {
  kNone,  // not in the table
  kAttention,
  kNorm,
  kActivation,
  kSoftmax,
  kDropout,
  kRope,
  kEmbedding,
  kLoss,
  kOptimizer,
  kAdd,       // of tensors: residuals, biases, gradients
  kMultiply,  // of tensors: gates, weights of norms, rotations
  kElementwise,
  kMove,  // copies, casts, transpositions, concatenations
};

struct OperatorWork {
  OperatorRole role = OperatorRole::kNone;
  bool backward = false;      // by its name; of additions and the like, by its thread
  std::int64_t elements = 0;  // of the tensor that it is about, scores of attention; 0: not recorded
};

// By the operator; where there is none, or one that is not known, by the name of the kernel.
[[nodiscard]] OperatorWork operator_work(const KinetoTrace& trace, const KinetoKernel& kernel);

// Is the operator fused attention, whatever its kernel is called?
[[nodiscard]] bool is_attention_operator(std::string_view name);

// Fused attention over whole samples: `queries` x `keys` scores for each of `batch` x `heads`.
struct KinetoAttention {
  bool backward = false;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_size = 0, value_size = 0;
  bool causal = false;
  std::string implementation;  // "fa2", "fa3", "cudnn", "efficient", as profiles call them
  std::string dtype;           // "bf16", ...; else PyTorch's

  friend bool operator==(const KinetoAttention&, const KinetoAttention&) = default;
};

// A kernel bound by memory, in the terms of samples of the family `kernel`.
struct KinetoMemoryWork {
  std::string op;  // "layernorm_forward"; of plain elementwise operators PyTorch's word: "add"
  std::map<std::string, std::int64_t> shape;
  std::string dtype;
  double bytes = 0;

  friend bool operator==(const KinetoMemoryWork&, const KinetoMemoryWork&) = default;
};

// Else why not, as it is counted: "attention without shapes".
using AttentionOrReason = std::variant<KinetoAttention, std::string>;
using MemoryWorkOrReason = std::variant<KinetoMemoryWork, std::string>;
[[nodiscard]] AttentionOrReason attention_of(const KinetoTrace& trace, const KinetoKernel& kernel);
[[nodiscard]] MemoryWorkOrReason memory_work_of(const KinetoTrace& trace, const KinetoKernel& kernel);

}  // namespace stagecraft
