#include "formats/shell_grammar.hpp"

#include <utility>

#include "formats/shell_variables.hpp"

namespace stagecraft {

namespace {

// What begins a compound command, and the mark of what ends it. The rest of `for x in …` is no command.
struct ShellOpener {
  std::string_view word;
  char closed_by;
  bool before_command;
};
constexpr ShellOpener kOpeners[] = {{"if", 'f', true},   {"while", 'd', true}, {"until", 'd', true},
                                    {"{", '}', true},    {"for", 'd', false},  {"select", 'd', false},
                                    {"case", 'e', false}};
constexpr std::string_view kClosers[] = {"fi", "done", "esac", "}"};
constexpr std::string_view kBetween[] = {"then", "else", "elif", "do", "!", "time"};
constexpr std::string_view kDeclares[] = {"export", "local", "declare", "typeset", "readonly"};
// Commands that set the variables among their words, to what is not read here.
constexpr std::string_view kSetters[] = {"read", "mapfile", "readarray", "let", "unset", "getopts", "eval"};

}  // namespace

bool ShellCompounds::takes(std::string_view word, ShellWords& command) {
  if (!command.empty()) {
    const std::string_view first = command.front().text;
    const bool heads = first == "function" || (first == "case" && word == "in") || word == "()";
    if (heads) command.clear();
    if (heads && word.ends_with("(){")) open_ += '}';
    return heads;
  }
  if (word.ends_with("(){")) {
    open_ += '}';
    return true;
  }
  for (const ShellOpener& opener : kOpeners) {
    if (opener.word != word) continue;
    open_ += opener.closed_by;
    return opener.before_command;
  }
  if (is_one_of(word, kClosers)) {
    if (open_.ends_with(word.front())) open_.pop_back();
    return true;
  }
  return word.ends_with("()") || is_one_of(word, kBetween);
}

void ShellCompounds::close_group() {
  if (open_.ends_with(')')) open_.pop_back();
}

bool declares(std::string_view command) {
  return is_one_of(command, kDeclares);
}

bool changes_values(const ShellWord& word) {
  return word.text.starts_with('-') && word.text.find_first_not_of("-xrga") != std::string::npos;
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t length = word_length(text);
    if (starts_name(text.front())) names.emplace_back(text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return names;
}

std::vector<std::string> names_set_by(const ShellWords& command) {
  const std::string_view first = command.front().text;
  const std::string_view second = command.size() > 1 ? std::string_view(command[1].text) : "";
  if (first == "for" || first == "select") return names_in(second);
  if (first == "printf")
    return second == "-v" && command.size() > 2 ? names_in(command[2].text) : names_in("");
  std::vector<std::string> names;
  if (is_one_of(first, kSetters)) {
    for (const ShellWord& word : command)
      for (std::string& name : names_in(word.text)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace stagecraft
