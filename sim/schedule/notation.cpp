#include "sim/schedule/notation.hpp"

#include <algorithm>
#include <charconv>

namespace stagecraft {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

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

ScheduleProblem bad_word(std::string_view word, std::size_t place) {
  const std::string where = "word " + std::to_string(place) + ", '" + std::string(word) + "', ";
  if (word.find_first_of("(;)") != std::string_view::npos) {
    return {.message = where + "is a fused pair, which is not supported yet",
            .hint = "write the two passes one after the other"};
  }
  return {.message = where + "is no pass",
          .hint = "write <stage><F|B|I|W|R><micro-batch> with blanks between, for example 0F3"};
}

}  // namespace

std::optional<Pass> pass_of(char wanted) {
  for (const Pass pass :
       {Pass::kForward, Pass::kBackward, Pass::kInputGradient, Pass::kWeightGradient, Pass::kRecompute}) {
    if (letter(pass) == wanted) return pass;
  }
  return std::nullopt;
}

std::variant<std::vector<Action>, ScheduleProblem> parse_actions(std::string_view line) {
  std::vector<Action> actions;
  std::size_t begin = line.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    const auto action = parse_action(word);
    if (!action) return bad_word(word, actions.size() + 1);
    actions.push_back(*action);
    begin = line.find_first_not_of(kBlanks, end);
  }
  return actions;
}

std::string print_actions(std::span<const Action> actions) {
  std::string line;
  for (const Action& action : actions) {
    if (!line.empty()) line += ' ';
    line += to_string(action);
  }
  return line;
}

}  // namespace stagecraft
