// Text files as commands read and write them: a mistake is a diagnostic with the file's name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// "-" reads standard input. Missing, a directory, unreadable: reported, nullopt.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& file, Diagnostics& diagnostics);

// May the file be written? It must be absent or to be replaced, no directory, and in a folder that takes
// files. Reports mistakes.
[[nodiscard]] bool may_write(const std::string& file, bool replace, Diagnostics& diagnostics);

// Checks the files that the command will write, before its work.
//
//   throws UsageError where two options name one file, or one names a file that the command reads;
//   ScenarioError where one may not be written.
void check_outputs(const Arguments& arguments);

// Writes completely or not at all, by a temporary file and a rename. An existing file is only replaced with
// `replace`, and keeps its mode. For a symbolic link the target is replaced; a device or a pipe is written
// to. Reports mistakes.
void write_text_file(const std::string& file, const std::string& text, bool replace,
                     Diagnostics& diagnostics);

// Writes a file piece by piece, without holding it in memory: `make` passes every piece to the function that
// it gets.
using TakePiece = std::function<void(std::string_view)>;
using MakePieces = std::function<void(const TakePiece&)>;
void write_file_in_pieces(const std::string& file, bool replace, const MakePieces& make,
                          Diagnostics& diagnostics);

}  // namespace stagecraft
