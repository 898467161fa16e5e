// `assert:` of a scenario: whether what a run gave is what the scenario wants.
#pragma once

#include <iosfwd>

#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Says on `err` which ones are missed.
[[nodiscard]] bool assertions_hold(const Scenario& scenario, const Report& report, std::ostream& err);

}  // namespace stagecraft
