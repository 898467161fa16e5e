// The written form of an order: `0F0 0F1 1B0`, passes in the order in which a rank runs them, with blanks
// between.
//
//   pass     <global stage><F|B|I|W|R><micro-batch>, the notation of PyTorch's pipelining: B a whole
//            backward, I and W its input and weight gradient, R a recompute.
//   (x;y)    a fused pair of passes. Refused for now: no generator makes one and an Action cannot hold one.
//   errors   a ScheduleProblem that quotes the word and counts it from 1; nothing is guessed or dropped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The inverse of letter(); nullopt for any other character, lower case included.
[[nodiscard]] std::optional<Pass> pass_of(char letter);

// The passes of one line, or what is wrong with its first bad word. An empty line is an empty order.
[[nodiscard]] std::variant<std::vector<Action>, ScheduleProblem> parse_actions(std::string_view line);

// One blank between passes, none at the ends. parse_actions(print_actions(x)) gives x for stages and
// micro-batches >= 0.
[[nodiscard]] std::string print_actions(std::span<const Action> actions);

}  // namespace stagecraft
