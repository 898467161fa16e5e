// Text files as commands read and write them: a mistake is a diagnostic with the file's name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace stagecraft {

// "-" reads standard input. Missing, a directory, unreadable: reported, nullopt.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& file, Diagnostics& diagnostics);

// Whether a file is not there or is to be replaced, and is no directory. Reports.
[[nodiscard]] bool may_write(const std::string& file, bool replace, Diagnostics& diagnostics);

// Whole or not at all: written beside and renamed. An existing file is only replaced with `replace`, and keeps
// its mode; of a link what it leads to is replaced; a device or a pipe is written to. Reports.
void write_text_file(const std::string& file, const std::string& text, bool replace,
                     Diagnostics& diagnostics);

// Writes a file that is made piece by piece, and is never in memory as a whole: `make` gives every piece to
// the function that it gets.
using TakePiece = std::function<void(std::string_view)>;
using MakePieces = std::function<void(const TakePiece&)>;
void write_file_in_pieces(const std::string& file, bool replace, const MakePieces& make,
                          Diagnostics& diagnostics);

}  // namespace stagecraft
