// Completion scripts for shells, made of the table of commands: they complete commands, options, what an
// option may be, names that the program knows, and files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Names that the data folder has.
struct InstalledNames {
  std::vector<std::string> scenarios;
  std::vector<std::string> settings;  // "model=gpt2": what --set may say of them
};
[[nodiscard]] InstalledNames installed_names(const DataDirectory& data);

struct Completion {
  std::string_view shell;
  std::string (*script)(const InstalledNames& names);
};

// bash, zsh, fish.
[[nodiscard]] std::span<const Completion> completions();

}  // namespace stagecraft
