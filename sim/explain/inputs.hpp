// Sources of the inputs of formulas: keys of the scenario, constants of the profile.
#pragma once

#include <string>

#include "calibrate/profile/hardware_profile.hpp"
#include "sim/explain/explanation.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// File and line of a key that was written; "default" where it was not.
[[nodiscard]] Origin key_origin(const Scenario& scenario, const std::string& path);
[[nodiscard]] Explanation key_input(const Scenario& scenario, const std::string& path, Amount value);

// "a100-sxm4-80gb of 2025-01-10, published: NVIDIA data sheet"
[[nodiscard]] Origin profile_origin(const HardwareProfile& profile, Provenance provenance,
                                    const std::string& source);
template <class T>
[[nodiscard]] Explanation profile_input(const HardwareProfile& profile, const std::string& name, Amount value,
                                        const Sourced<T>& constant) {
  return leaf("profile." + name, value, profile_origin(profile, constant.provenance, constant.source));
}

}  // namespace stagecraft
