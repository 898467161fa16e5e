// What an operator of a trace moves through memory, in the terms of a sample.
//
// Shapes are those that the trace recorded of the operator that launched the kernel (record_shapes=True);
// what it does not tell is not guessed: nothing is counted of an operator that is not in the table, of
// tensors of unknown type, of a list of more than 30 tensors (PyTorch writes none of it).
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

// The work of a kernel, or why it is not told, as it is counted: "memory-bound kernels without shapes".
using MemoryWorkOrReason = std::variant<KinetoMemoryWork, std::string>;
[[nodiscard]] MemoryWorkOrReason memory_work_of(const KinetoTrace& trace, const KinetoKernel& kernel);

// Elements of the tensor that the operator is about; 0: not recorded.
[[nodiscard]] std::int64_t main_elements(const KnownOperator& known, const KinetoInputs& inputs);

}  // namespace stagecraft
