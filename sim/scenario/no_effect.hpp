// Keys that the user wrote and that change nothing in this scenario.
//
// An ignored input is worse than an error, so each is named with the reason. This covers only cases that
// follow from the scenario alone.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Warnings "had no effect: why" (code no-effect), in a fixed order of keys; among them the keys that have
// less effect than they seem to have.
[[nodiscard]] std::vector<Diagnostic> keys_without_effect(const Scenario& scenario);

// Keys that change nothing where the model is abstract stages, whatever else the scenario says.
[[nodiscard]] std::span<const std::string_view> idle_keys_of_stages();

}  // namespace stagecraft
