// The constants of whole iterations, by name: an ablation switches them off, a fit moves them.
//
// A name is a place in a loaded scenario: its profile, its fabric, its node or its software. Nothing else of
// the program knows these names, and no price is computed differently because of them: a change is a change
// of values.
#pragma once

#include <span>
#include <string_view>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

struct ModelConstant {
  std::string_view name;
  std::string_view meaning;
  double (*get)(const Scenario& scenario) = nullptr;
  void (*set)(Scenario& scenario, double value) = nullptr;
};

[[nodiscard]] std::span<const ModelConstant> model_constants();
[[nodiscard]] const ModelConstant* find_constant(std::string_view name);  // nullptr: no such name

}  // namespace stagecraft
