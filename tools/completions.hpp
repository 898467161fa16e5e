// Completion scripts for shells, made of the table of commands: they complete commands, options, what an
// option may be, names that the program knows, and files.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stagecraft {

struct Completion {
  std::string_view shell;
  std::string (*script)();
};

// bash, zsh, fish.
[[nodiscard]] std::span<const Completion> completions();

}  // namespace stagecraft
