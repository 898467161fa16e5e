// Files that a scenario names by their paths.
#pragma once

#include <filesystem>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Names them, from the folder `from`, as a scenario in `to` does. Absolute paths stay, and so do installed names:
// no file beside the scenario has such a name.
void move_named_files(Scenario& scenario, const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace stagecraft
