// The variables of a shell script, and the words that they hold (shell_words.hpp).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "formats/shell_words.hpp"

namespace stagecraft {

[[nodiscard]] constexpr bool is_shell_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// How many letters and digits a text begins with.
[[nodiscard]] std::size_t word_length(std::string_view text);
// The name that "NAME=…", "NAME+=…" and "NAME[…]=…" set; empty where the word is another.
[[nodiscard]] std::string_view set_name(std::string_view word);

constexpr std::size_t kMostUnknown = 64;
// Notes what is not known in a word, once. One more than kMostUnknown says that there are too many.
void mark_unknown(ShellWord& word, std::string_view unknown);
// Of the `$…` or "`" that a text begins with, as `unexpanded` names it.
[[nodiscard]] std::string_view unknown_at(std::string_view text);

// What a text sets, beside what the user defines. An array has a word for each item.
class ShellVariables {
 public:
  explicit ShellVariables(const ShellDefines& defines);

  // nullptr where the value is not known.
  [[nodiscard]] const ShellWords* find(const std::string& name) const;
  // Of what a user has given as one text, too.
  [[nodiscard]] std::optional<ShellWords> find_items(const std::string& name) const;

  // nullopt where it is not known, as in a branch.
  void set(const std::string& name, std::optional<ShellWords> value, bool appends, bool array);
  // Whatever is set later: a function may run at any time, and an integer adds where a text would grow.
  void never_known(const std::string& name);

 private:
  const ShellDefines& users_;
  std::map<std::string, std::optional<ShellWords>, std::less<>> known_;
  std::set<std::string, std::less<>> fixed_;
};

}  // namespace stagecraft
