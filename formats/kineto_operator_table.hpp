// Table of a trace's operators: their role in a layer, and the count of their bytes.
//
//   source   arguments of operators: pytorch/pytorch aten/src/ATen/native/native_functions.yaml; names of
//            functions of NVIDIA/apex and Megatron-LM
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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

// Does either pass have operators of this role? Then only the thread of a call tells its pass.
[[nodiscard]] constexpr bool is_of_either_pass(OperatorRole role) {
  return role == OperatorRole::kAdd || role == OperatorRole::kMultiply ||
         role == OperatorRole::kElementwise || role == OperatorRole::kMove;
}

// Rule for the bytes of an operator.
enum class OperatorTraffic : std::uint8_t {
  kNotCounted,
  kOperands,   // `operands` tensors of the size and type of the main one
  kLookup,     // rows of a table, by indices
  kBroadcast,  // every input tensor, and the result
  kMove,       // argument 1 into argument 0
  kList,       // `operands` lists like its main one; type by the kernel
  kForeach,    // lists by the kernel's functor
  kJoin,       // a list into one tensor
};

// The named extents of its samples.
enum class SampleShape : std::uint8_t { kFlat, kRows, kScores, kHeads, kVocabulary };

struct KnownOperator {
  std::string_view name;
  OperatorRole role;
  bool backward = false;
  std::string_view sample{};  // its name among samples; none: PyTorch's word
  OperatorTraffic traffic = OperatorTraffic::kNotCounted;
  SampleShape shape = SampleShape::kFlat;
  std::size_t main = 0;     // the argument that it is about
  int operands = 0;         // of kOperands, kLookup and kList
  int masks = 0;            // beside them, a byte an element
  int per_row = 0;          // bytes of statistics a row
  std::size_t indices = 0;  // the argument of a lookup
};

// nullptr: not in the table. All _foreach_ operators are one.
[[nodiscard]] const KnownOperator* known_operator(std::string_view name);

}  // namespace stagecraft
