#include "sim/schedule/notation.hpp"

#include <charconv>

namespace stagecraft {
namespace {

// Reads the digits at the front of `text` and removes them. nullopt when there are none or they exceed 32
// bits.
std::optional<std::int32_t> take_number(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9')
    return std::nullopt;  // from_chars takes a minus sign
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<Action> parse_action(std::string_view word) {
  const auto stage = take_number(word);
  if (!stage || word.empty()) return std::nullopt;
  const auto pass = pass_of(word.front());
  word.remove_prefix(1);
  const auto micro_batch = take_number(word);
  if (!pass || !micro_batch || !word.empty()) return std::nullopt;
  return Action{.pass = *pass, .stage = *stage, .micro_batch = *micro_batch};
}

}  // namespace

std::optional<Pass> pass_of(char wanted) {
  for (const Pass pass :
       {Pass::kForward, Pass::kBackward, Pass::kInputGradient, Pass::kWeightGradient, Pass::kRecompute}) {
    if (letter(pass) == wanted) return pass;
  }
  return std::nullopt;
}

std::optional<std::vector<Action>> parse_word(std::string_view word) {
  if (!word.starts_with('(')) {
    const auto action = parse_action(word);
    return action ? std::optional(std::vector{*action}) : std::nullopt;
  }
  const std::size_t middle = word.find(';');
  if (middle == std::string_view::npos || !word.ends_with(')')) return std::nullopt;
  auto first = parse_action(word.substr(1, middle - 1));
  const auto second = parse_action(word.substr(middle + 1, word.size() - middle - 2));
  if (!first || !second) return std::nullopt;
  first->fused = true;
  return std::vector{*first, *second};
}

std::vector<std::string> words_of(std::span<const Action> actions) {
  std::vector<std::string> words;
  words.reserve(actions.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].fused && i + 1 < actions.size()) {
      words.push_back("(" + to_string(actions[i]) + ";" + to_string(actions[i + 1]) + ")");
      ++i;
    } else {
      words.push_back(to_string(actions[i]));
    }
  }
  return words;
}

std::string print_actions(std::span<const Action> actions) {
  std::string line;
  for (const std::string& word : words_of(actions)) {
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line;
}

}  // namespace stagecraft
