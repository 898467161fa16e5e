// What a JSON document was made from: the same values give the same document, byte for byte.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// A JSON object with the keys of another behind its own; both have some.
[[nodiscard]] std::string with_keys(std::string document, std::string_view more);

// The document, an object, with these keys behind its own:
//
//   stagecraft_version   of the program
//   scenario_hash        of the scenario with its options and all defaults but for its name, whatever file it is
//                        from, and of the orders, traces and other jobs that it names
//                        (sim/scenario/scenario_hash.hpp)
//   profile_hash         of the text of its profile, of several devices and other jobs each once; absent for
//                        abstract stages
[[nodiscard]] std::string with_origin(std::string document, const Scenario& scenario);
// Of many scenarios on profiles of these hashes: the same keys without `scenario_hash`.
[[nodiscard]] std::string with_origin(std::string document, std::span<const std::string> profile_hashes);

}  // namespace stagecraft
