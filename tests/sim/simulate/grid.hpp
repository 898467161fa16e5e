// A grid of small real scenarios: two model families, every axis, every schedule, every switch at least once
// on and off.
#pragma once

#include <functional>
#include <string>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Calls `visit` with each scenario of the grid and its name. 1 to 128 A100, 8 layers, 48 samples an
// iteration.
void for_each_in_grid(const std::function<void(const std::string& name, const Scenario& scenario)>& visit);

}  // namespace stagecraft
