// Which memory-bound operators are measured, at which sizes, and how many bytes each one moves.
//
// Bytes are HBM traffic with each operand read or written once, as in docs/op-inventory.md; where a chain of
// simple kernels honestly moves something else than the table there, the difference is told beside the row.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/samples/sample.hpp"

namespace stagecraft {

enum class KernelShape {
  kRows,        // tokens, hidden
  kScores,      // heads (of all samples), sequence: heads * sequence rows of `sequence`
  kHeads,       // tokens, heads, head_size
  kVocabulary,  // tokens, vocabulary (the shard of a rank)
  kFlat,        // elements
  kRouted       // tokens, hidden, topk
};

// Bytes of an element (for kRouted: of an element of a token, plus `per_copy` for each of its copies). An
// operator without unfused form has unfused = 0.
struct KernelOp {
  std::string_view name;
  KernelShape shape;
  int fused = 0, unfused = 0;
  int per_token = 0, per_column = 0;
  int fused_per_copy = 0, unfused_per_copy = 0;
  int unfused_launches = 1;
};
[[nodiscard]] const std::vector<KernelOp>& kernel_ops();
[[nodiscard]] const KernelOp* find_kernel_op(std::string_view name);

// Elements by which bytes are counted: the product of the extents, copies not counted.
[[nodiscard]] std::int64_t kernel_elements(const KernelOp& op, const Sample& sample);
[[nodiscard]] double kernel_bytes(const KernelOp& op, const Sample& sample);

// The points of the default suite with bytes and default tags filled in; most valuable shapes of a kind
// first.
[[nodiscard]] std::vector<Sample> kernel_points();

// Empty, or why this point cannot be measured: unknown operator, missing or extra extents, extents that no
// kernel covers. Fills in missing tags and the bytes.
[[nodiscard]] std::string complete_kernel_point(Sample& sample);

}  // namespace stagecraft
