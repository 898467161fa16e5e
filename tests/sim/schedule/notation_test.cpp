#include "sim/schedule/notation.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <vector>

#include "tests/sim/schedule/actions_of.hpp"

namespace stagecraft {
namespace {

TEST(Notation, ReadsStagePassAndMicroBatchOfEveryPass) {
  const std::vector<Action> expected{{.pass = Pass::kForward, .stage = 0, .micro_batch = 10},
                                     {.pass = Pass::kBackward, .stage = 12, .micro_batch = 3},
                                     {.pass = Pass::kInputGradient, .stage = 1, .micro_batch = 0},
                                     {.pass = Pass::kWeightGradient, .stage = 1, .micro_batch = 0},
                                     {.pass = Pass::kRecompute, .stage = 2, .micro_batch = 7}};
  EXPECT_EQ(actions_of("0F10 12B3 1I0 1W0 2R7"), expected);
}

TEST(Notation, PrintsWhatItReads) {
  for (const char* line :
       {"", "0F0", "0F10 12B3 1I0 1W0 2R7", "2147483647F2147483647", "(0F1;1B0)", "0F0 (0F1;1B0) 0B0"}) {
    EXPECT_EQ(print_actions(actions_of(line)), line);
  }
}

TEST(Notation, ReadsAFusedPairAsTwoPassesOfWhichTheFirstIsFused) {
  const std::vector<Action> expected{{.pass = Pass::kForward, .stage = 0, .micro_batch = 1},
                                     {.pass = Pass::kForward, .stage = 0, .micro_batch = 3, .fused = true},
                                     {.pass = Pass::kBackward, .stage = 3, .micro_batch = 5},
                                     {.pass = Pass::kBackward, .stage = 0, .micro_batch = 0}};
  EXPECT_EQ(actions_of("0F1 (0F3;3B5) 0B0"), expected);
  EXPECT_EQ(words_of(expected), (std::vector<std::string>{"0F1", "(0F3;3B5)", "0B0"}));
}

TEST(Notation, RefusesWhatIsNoPassAndNoFusedPair) {
  for (const std::string_view word : {"(0F3)",
                                      "(0F3;)",
                                      "(;0B3)",
                                      "(0F3;3B5",
                                      "0F3;3B5)",
                                      "(0F3;3B5;1F1)",
                                      "(0F3,3B5)",
                                      "()",
                                      "((0F3;3B5))",
                                      "",
                                      "0",
                                      "F",
                                      "0F",
                                      "F0",
                                      "F1",
                                      "0f0",
                                      "0X0",
                                      "-1F0",
                                      "0F-1",
                                      "+1F0",
                                      "0F0B",
                                      "0F0,0B0",
                                      "0 F 0",
                                      " 0F0",
                                      "1.5F0",
                                      "99999999999F0",
                                      "0F99999999999"}) {
    EXPECT_EQ(parse_word(word), std::nullopt) << word;
  }
}

TEST(Notation, HasALetterForEveryPassAndAPassForNoOtherCharacter) {
  int known = 0;
  for (int c = 0; c < 128; ++c) {
    const auto pass = pass_of(static_cast<char>(c));
    if (!pass) continue;
    EXPECT_EQ(letter(*pass), static_cast<char>(c));
    ++known;
  }
  EXPECT_EQ(known, 5);
}

}  // namespace
}  // namespace stagecraft
