// What the operator of a kernel does in a layer, and on how much.
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

// Work is told by the operator; where there is none, or one that is not known, by the name of the kernel.
[[nodiscard]] OperatorWork operator_work(const KinetoTrace& trace, const KinetoKernel& kernel);

}  // namespace stagecraft
