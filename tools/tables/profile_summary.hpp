// Contents of a profile with their sources, and the error of its tile model on its own table: `calibrate
// show`.
#pragma once

#include <string>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

[[nodiscard]] std::string summary_text(const HardwareProfile& profile);
// One document on one line ("stagecraft.profile-summary/1").
[[nodiscard]] std::string summary_json(const HardwareProfile& profile);

}  // namespace stagecraft
