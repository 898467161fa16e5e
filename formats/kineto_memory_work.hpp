// Memory traffic of a trace's operator, in the terms of a sample.
//
// Shapes are those recorded for the operator that launched the kernel (record_shapes=True). Missing
// information is not guessed: operators outside the table, tensors of unknown type, and lists of more than 30
// tensors (which PyTorch does not record) are not counted.
//
//   bytes    each operand read or written once, at its own type; masks one byte an element
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "formats/kineto.hpp"
#include "formats/kineto_operator_table.hpp"

namespace stagecraft {

// A kernel bound by memory, in the terms of samples of the family `kernel`.
struct KinetoMemoryWork {
  std::string op;  // "layernorm_forward"; of plain elementwise operators PyTorch's word: "add"
  std::map<std::string, std::int64_t> shape;
  std::string dtype;
  double bytes = 0;

  friend bool operator==(const KinetoMemoryWork&, const KinetoMemoryWork&) = default;
};

// The work of a kernel, or the reason for its absence, as it is counted: "memory-bound kernels without
// shapes".
using MemoryWorkOrReason = std::variant<KinetoMemoryWork, std::string>;
[[nodiscard]] MemoryWorkOrReason memory_work_of(const KinetoTrace& trace, const KinetoKernel& kernel);

// Elements of the tensor that the operator is about; 0: not recorded.
[[nodiscard]] std::int64_t main_elements(const KnownOperator& known, const KinetoInputs& inputs);

}  // namespace stagecraft
