// Nodes that have another device than the profile that prices them.
#pragma once

#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Warnings (code other-device), wherever the profile was named: `device` of a node is a name, and changes no
// price.
[[nodiscard]] std::vector<Diagnostic> other_devices(const Scenario& scenario);

}  // namespace stagecraft
