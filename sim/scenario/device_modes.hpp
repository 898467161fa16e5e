// The devices of a scenario, and the modes of computing that they have.
#pragma once

#include <vector>

#include "base/diagnostic.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// One profile per node group where they differ, otherwise the scenario's own; none for abstract stages
// without one.
[[nodiscard]] std::vector<const HardwareProfile*> profiles_of(const Scenario& scenario);

// Reports a precision or a recipe of FP8 that some device lacks.
void check_device_modes(const Scenario& scenario, Diagnostics& diagnostics);

}  // namespace stagecraft
