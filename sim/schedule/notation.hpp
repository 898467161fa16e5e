// The written form of an order: `0F0 0F1 1B0`, passes in the order in which a rank runs them, with blanks
// between.
//
//   pass     <global stage><F|B|I|W|R><micro-batch>, the notation of PyTorch's pipelining: B a whole
//            backward, I and W its input and weight gradient, R a recompute.
//   (x;y)    a fused pair of passes, with no blanks inside.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The inverse of letter(); nullopt for any other character, lower case included.
[[nodiscard]] std::optional<Pass> pass_of(char letter);

// Parses one word: "0F3", "(0F3;1B0)". nullopt for anything else. One action, or the two of a pair.
[[nodiscard]] std::optional<std::vector<Action>> parse_word(std::string_view word);

// One word per pass or fused pair. parse_word() restores the actions for stages and micro-batches >= 0. The
// fused mark of the last action is lost, since it has no partner.
[[nodiscard]] std::vector<std::string> words_of(std::span<const Action> actions);

// The words with one blank between, none at the ends.
[[nodiscard]] std::string print_actions(std::span<const Action> actions);

}  // namespace stagecraft
