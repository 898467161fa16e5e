// Text files as commands read and write them: a mistake is a diagnostic with the file's name.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.hpp"

namespace stagecraft {

// "-" reads standard input. Missing, a directory, unreadable: reported, nullopt.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& file, Diagnostics& diagnostics);

// Whole or not at all: written beside and renamed. An existing file is only replaced with `replace`. Reports.
void write_text_file(const std::string& file, const std::string& text, bool replace,
                     Diagnostics& diagnostics);

}  // namespace stagecraft
