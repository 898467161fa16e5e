// The identity of a scenario: the same hash, the same answer of one version of the program.
#pragma once

#include <string>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Of its keys with their values, defaults included, but for its name: whatever file they are from. The replicas
// count, whether they are given or left by the other degrees. And of the contents of the files that to_yaml()
// only names: orders of passes, traces of failures and repairs, scenarios of other jobs.
// Profiles count by their names (HardwareProfile::hash is of their text).
[[nodiscard]] std::string scenario_hash(const Scenario& scenario);

}  // namespace stagecraft
