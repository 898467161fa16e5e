// Role of a kernel's operator in a layer, and its number of elements.
#pragma once

#include <cstdint>

#include "formats/kineto.hpp"
#include "formats/kineto_operator_table.hpp"

namespace stagecraft {

struct OperatorWork {
  OperatorRole role = OperatorRole::kNone;
  bool backward = false;      // by its name; of additions and the like, by its thread
  std::int64_t elements = 0;  // of the tensor that it is about, scores of attention; 0: not recorded
};

// The operator determines the work; for a missing or unknown operator, the name of the kernel.
[[nodiscard]] OperatorWork operator_work(const KinetoTrace& trace, const KinetoKernel& kernel);

}  // namespace stagecraft
