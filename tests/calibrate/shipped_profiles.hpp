// Profiles of the repository; a diagnostic of one fails the test.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

// path: below calibrate/.
inline HardwareProfile profile_of(const std::string& path) {
  Diagnostics diagnostics;
  std::optional<HardwareProfile> profile =
      load_profile(STAGECRAFT_SOURCE_DIR "/calibrate/" + path, diagnostics);
  EXPECT_TRUE(diagnostics.items().empty()) << render_json(diagnostics.items());
  return profile.value();
}

inline HardwareProfile profile_called(const std::string& name) {
  return profile_of("profiles/" + name + ".yaml");
}

inline HardwareProfile a100() {
  return profile_called("a100-sxm4-80gb");
}

}  // namespace stagecraft
