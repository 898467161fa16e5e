// What fails, in one line: one law with one cause.
#pragma once

#include <utility>

#include "sim/goodput/failure_spec.hpp"

namespace stagecraft::made {

inline RepairSpec constant(Duration time) {
  return {.kind = RepairKind::kConstant, .time = time};
}

inline FailureSpec failures(FailureLaw law, Cause cause, Duration horizon) {
  FailureSpec spec;
  spec.processes = {{.law = std::move(law), .causes = {std::move(cause)}}};
  spec.horizon = horizon;
  return spec;
}

}  // namespace stagecraft::made
