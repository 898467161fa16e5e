// What a profile knows, where from, and how well its tile model meets its own table: `calibrate show`.
#pragma once

#include <string>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

[[nodiscard]] std::string summary_text(const HardwareProfile& profile);
// One document on one line ("stagecraft.profile-summary/1").
[[nodiscard]] std::string summary_json(const HardwareProfile& profile);

}  // namespace stagecraft
