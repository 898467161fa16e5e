// Of the grammar of a shell as much as tells whether a command runs once and for certain, and what it sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "formats/shell_words.hpp"

namespace stagecraft {

template <std::size_t n>
bool is_one_of(std::string_view word, const std::string_view (&words)[n]) {
  return std::ranges::find(words, word) != std::end(words);
}

// `if`, loops, `case`, functions, groups and subshells that are open.
class ShellCompounds {
 public:
  // Takes a word that begins, divides or ends one, and the head of a function: what follows is a command of
  // its own. `command` are the words before it, which it empties then.
  bool takes(std::string_view word, ShellWords& command);
  void open_group() { open_ += ')'; }
  void close_group();

  [[nodiscard]] bool is_open() const { return !open_.empty(); }
  [[nodiscard]] bool in_braces() const { return open_.find('}') != std::string::npos; }

 private:
  // The first letter of what closes each ("f" of fi, "d" of done, "}", ")"), outermost first.
  std::string open_;
};

// `export`, `declare`, …
[[nodiscard]] bool declares(std::string_view command);
// Options of `declare` other than -x, -r, -g and -a: values are integers, other names, …
[[nodiscard]] bool changes_values(const ShellWord& word);
[[nodiscard]] std::vector<std::string> names_in(std::string_view text);
// The variables that a command sets to what is not read here: `read`, `let`, `unset`, `for`, …
[[nodiscard]] std::vector<std::string> names_set_by(const ShellWords& command);

}  // namespace stagecraft
