// The inputs that decide how much the answer is worth, each at half and at twice its value.
//
// Published failure rates differ by a factor of 3 between clusters and restart times by 4
// (docs/resilience.md, section 9), so a goodput means little without its inputs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {

struct VariedInput {
  std::string_view path;  // path of the key in a scenario: "failures.process.rate_per_node_day"
  // Text of the value; empty where this spec has no such input.
  std::string (*value)(const FailureSpec& spec) = nullptr;
  void (*scale)(FailureSpec& spec, double factor) = nullptr;
  bool of_pool = false;  // of a spec whose number of spares is filled in, given or not
};

[[nodiscard]] std::span<const VariedInput> varied_inputs();

}  // namespace stagecraft
