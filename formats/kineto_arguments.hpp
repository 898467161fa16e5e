// An operator's recorded arguments in a trace: extents, types and sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/kineto.hpp"

namespace stagecraft {

using Extents = std::vector<std::int64_t>;  // extents of a tensor

// 0 of no tensor, or of one that no memory holds.
[[nodiscard]] std::int64_t elements_of(const Extents& dims);

// Bytes of an element. 0: not a type of PyTorch's that is known here.
[[nodiscard]] int type_size(std::string_view type);

// "bf16", "fp16", "fp32" of samples; else PyTorch's own word.
[[nodiscard]] std::string dtype_word(std::string_view type);

// An argument of an operator, where it is a tensor. Points into the arguments.
struct TensorArgument {
  const Extents* dims = nullptr;
  std::string_view type;
  [[nodiscard]] std::int64_t elements() const { return dims == nullptr ? 0 : elements_of(*dims); }
};
[[nodiscard]] TensorArgument tensor_argument(const KinetoInputs& inputs, std::size_t at);

// Broadcast tensors: the inputs, and the result, which has the widest type.
struct Broadcast {
  std::int64_t elements = 0;  // elements of the result
  double bytes = 0;
  std::string_view type;
};
// nullopt where extents do not fit, or a type is not known.
[[nodiscard]] std::optional<Broadcast> broadcast_of(const KinetoInputs& inputs);

}  // namespace stagecraft
