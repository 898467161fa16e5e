// Which keys a scenario may have, as its reader tells (base/key_survey.hpp).
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario_tree.hpp"

namespace stagecraft {

// Dotted paths of all keys that a scenario like this one may have, given or not ("[]" for the items of a list),
// in the order of asking. Of a scenario that does not load, be it for other mistakes than keys that nobody
// knows, those of the sections that it has.
[[nodiscard]] std::vector<std::string> known_keys(const ScenarioTree& tree, Library& library);

}  // namespace stagecraft
