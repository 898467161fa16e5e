#include "formats/shell_variables.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {

namespace {

constexpr std::size_t kLongestName = 256;  // a word is asked as often as something is put into it

// Of a value that a user has given for an array: its words, which quotes may hold together.
ShellWords items_of(std::string_view text) {
  ShellWords items;
  ShellWord item;
  bool open = false;
  char quote = 0;
  for (const char c : text) {
    const bool blank = is_shell_blank(c) || c == '\n';
    if (quote == 0 && blank) {
      if (std::exchange(open, false)) items.push_back(std::exchange(item, {}));
      continue;
    }
    open = true;
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = 0;
    else
      item.text += c;
  }
  if (open) items.push_back(std::move(item));
  return items;
}

}  // namespace

std::size_t word_length(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, continues_name) - text.begin());
}

std::string_view set_name(std::string_view word) {
  word = word.substr(0, kLongestName);
  const std::size_t end = word.empty() || !starts_name(word.front()) ? 0 : word_length(word);
  std::string_view behind = word.substr(end);
  if (end > 0 && behind.starts_with('['))
    behind.remove_prefix(std::min(behind.find(']'), behind.size() - 1) + 1);
  return end > 0 && (behind.starts_with('=') || behind.starts_with("+=")) ? word.substr(0, end)
                                                                          : std::string_view();
}

void mark_unknown(ShellWord& word, std::string_view unknown) {
  auto& names = word.unexpanded;
  if (names.size() <= kMostUnknown && std::ranges::find(names, unknown) == names.end())
    names.emplace_back(unknown);
}

std::string_view unknown_at(std::string_view text) {
  if (text.starts_with('`')) return "`…`";
  if (text.starts_with("$(")) return "(…)";
  text.remove_prefix(1);
  const bool braced = text.starts_with('{');
  const std::string_view name = text.substr(braced ? 1 : 0);
  return name.substr(0, word_length(name));
}

ShellVariables::ShellVariables(const ShellDefines& defines) : users_(defines) {
  for (const auto& [name, value] : defines) {
    known_[name] = ShellWords{{.text = value}};
    fixed_.insert(name);
  }
}

const ShellWords* ShellVariables::find(const std::string& name) const {
  const auto found = known_.find(name);
  return found == known_.end() || !found->second ? nullptr : &*found->second;
}

std::optional<ShellWords> ShellVariables::find_items(const std::string& name) const {
  if (const auto given = users_.find(name); given != users_.end()) return items_of(given->second);
  const ShellWords* known = find(name);
  return known == nullptr ? std::nullopt : std::optional<ShellWords>(*known);
}

void ShellVariables::set(const std::string& name, std::optional<ShellWords> value, bool appends, bool array) {
  if (fixed_.contains(name)) return;
  const auto [place, added] = known_.try_emplace(name);
  std::optional<ShellWords>& now = place->second;
  if (!value || !appends || added) {
    now = std::move(value);
  } else if (now && array) {
    now->insert(now->end(), value->begin(), value->end());
  } else if (now && !now->empty()) {
    now->front().text += value->front().text;
    for (const std::string& unknown : value->front().unexpanded) mark_unknown(now->front(), unknown);
  }
}

void ShellVariables::never_known(const std::string& name) {
  if (fixed_.insert(name).second) known_[name].reset();
}

}  // namespace stagecraft
