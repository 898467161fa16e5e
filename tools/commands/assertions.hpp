// `assert:` of a scenario: does a run meet the scenario's conditions?
#pragma once

#include <iosfwd>

#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Says on `err` which ones are missed.
[[nodiscard]] bool assertions_hold(const Scenario& scenario, const Report& report, std::ostream& err);

}  // namespace stagecraft
