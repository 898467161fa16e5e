// The words that a shell would give a program, without running anything.
//
//   variables  that are defined are replaced, others stay marked, so that a reader that needs them refuses
//              them. What a text sets itself (NAME=…, NAME=( … ), NAME+=…) counts unless the user defined it.
//              What it sets in any other way is not known: in a branch, a loop or a function, from a
//              command, by `read`, `let`, `unset`, … Nor is what it sets more than once, but for a list of
//              options that grows.
//   a script   is a text that sets variables. Its commands with a Python file are its launches.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace stagecraft {

struct ShellWord {
  std::string text = {};
  std::vector<std::string> unexpanded = {};  // variables in it that nobody defined; "(…)" and "`…`" of
                                             // commands, "{…}" of ${NAME%4} and the like; each once
  int line = 0;
  bool redirects = false;  // begins with an operator, "2>" or "<"
};

using ShellWords = std::vector<ShellWord>;

struct ShellCommands {
  std::vector<ShellWords> launches = {};  // of a script
  ShellWords all = {};                    // of all lines, without what sets variables
};

using ShellDefines = std::map<std::string, std::string, std::less<>>;

// Splits as a shell does: quotes, comments, backslashes at line ends, pipes and redirections. Reports unclosed
// quotes and arrays, and defaults (`${TP:-8}`) that are taken.
[[nodiscard]] ShellCommands shell_words(std::string_view text, const std::string& name,
                                        const ShellDefines& defines, Diagnostics& diagnostics);

// A word that a shell has already unquoted.
[[nodiscard]] ShellWord expanded_word(std::string_view word, const std::string& name,
                                      const ShellDefines& defines, Diagnostics& diagnostics);

// Of the name of a variable.
[[nodiscard]] constexpr bool starts_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
[[nodiscard]] constexpr bool continues_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

}  // namespace stagecraft
