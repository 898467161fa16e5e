// The words that a shell would give a program, without running anything.
//
//   variables  that are defined are replaced, others stay marked, so that a reader that needs them refuses
//              them. What a text sets itself (NAME=…, NAME=( … ), NAME+=…) counts unless the user defined it.
//              What it sets in a branch or a loop, or from a command, is not known.
//   a script   is a text that sets variables. Of its commands the longest with a Python file is taken: the
//              launch. Of other texts all lines are taken, which hold options.
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
  std::vector<std::string> unexpanded = {};  // variables in it that nobody defined; "(…)" and "`…`": commands
  int line = 0;
};

using ShellDefines = std::map<std::string, std::string, std::less<>>;

// Splits as a shell does: quotes, comments, backslashes at line ends, pipes and redirections. Reports unclosed
// quotes, and defaults (`${TP:-8}`) that are taken.
[[nodiscard]] std::vector<ShellWord> shell_words(std::string_view text, const std::string& name,
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
