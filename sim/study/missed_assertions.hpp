// `assert:` of a scenario against what its run gave.
#pragma once

#include <vector>

#include "base/diagnostic.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// An error (code assertion-missed) for each one that does not hold, in the order of the scenario.
[[nodiscard]] std::vector<Diagnostic> missed_assertions(const Scenario& scenario, const Report& report);

}  // namespace stagecraft
