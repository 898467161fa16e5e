// The text of a file that somebody named on the command line or in a scenario.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/diagnostic.hpp"

namespace stagecraft {

// "-" reads standard input. Missing (with the nearest name), unreadable, a directory, a pipe, larger than
// kMaxYamlFileBytes: a located message, nullopt.
[[nodiscard]] std::optional<std::string> load_text_file(const std::filesystem::path& file,
                                                        Diagnostics& diagnostics);

// What places in a file call it: its path, or "<stdin>" for "-".
[[nodiscard]] std::string place_name(const std::filesystem::path& file);

}  // namespace stagecraft
