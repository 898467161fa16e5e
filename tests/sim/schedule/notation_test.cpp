#include "sim/schedule/notation.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace stagecraft {
namespace {

std::vector<Action> actions_of(std::string_view line) {
  auto parsed = parse_actions(line);
  if (const auto* problem = std::get_if<ScheduleProblem>(&parsed)) ADD_FAILURE() << problem->message;
  return std::get<std::vector<Action>>(std::move(parsed));
}

ScheduleProblem problem_of(std::string_view line) {
  auto parsed = parse_actions(line);
  if (std::holds_alternative<ScheduleProblem>(parsed)) return std::get<ScheduleProblem>(parsed);
  ADD_FAILURE() << "accepted: " << line;
  return {};
}

TEST(Notation, ReadsStagePassAndMicroBatchOfEveryPass) {
  const std::vector<Action> expected{{.pass = Pass::kForward, .stage = 0, .micro_batch = 10},
                                     {.pass = Pass::kBackward, .stage = 12, .micro_batch = 3},
                                     {.pass = Pass::kInputGradient, .stage = 1, .micro_batch = 0},
                                     {.pass = Pass::kWeightGradient, .stage = 1, .micro_batch = 0},
                                     {.pass = Pass::kRecompute, .stage = 2, .micro_batch = 7}};
  EXPECT_EQ(actions_of("0F10 12B3 1I0 1W0 2R7"), expected);
}

TEST(Notation, PrintsWhatItReads) {
  for (const std::string_view line :
       {"", "0F0", "0F10 12B3 1I0 1W0 2R7", "2147483647F2147483647", "(0F1;1B0)", "0F0 (0F1;1B0) 0B0"}) {
    EXPECT_EQ(print_actions(actions_of(line)), line);
  }
}

TEST(Notation, TakesAnyBlanksBetweenPasses) {
  EXPECT_EQ(actions_of("  0F0\t0B0  \r"), actions_of("0F0 0B0"));
  EXPECT_TRUE(actions_of(" \t ").empty());
}

TEST(Notation, ReadsAFusedPairAsTwoPassesOfWhichTheFirstIsFused) {
  const std::vector<Action> expected{{.pass = Pass::kForward, .stage = 0, .micro_batch = 1},
                                     {.pass = Pass::kForward, .stage = 0, .micro_batch = 3, .fused = true},
                                     {.pass = Pass::kBackward, .stage = 3, .micro_batch = 5},
                                     {.pass = Pass::kBackward, .stage = 0, .micro_batch = 0}};
  EXPECT_EQ(actions_of("0F1 (0F3;3B5) 0B0"), expected);
  EXPECT_EQ(words_of(expected), (std::vector<std::string>{"0F1", "(0F3;3B5)", "0B0"}));
}

TEST(Notation, RefusesWhatIsNoFusedPairAndCountsWordsNotPasses) {
  for (const std::string_view word : {"(0F3)", "(0F3;)", "(;0B3)", "(0F3;3B5", "0F3;3B5)", "(0F3;3B5;1F1)",
                                      "(0F3,3B5)", "()", "((0F3;3B5))"}) {
    SCOPED_TRACE(word);
    const ScheduleProblem problem = problem_of("(0F1;1B0) " + std::string(word));
    EXPECT_EQ(problem.message, "word 2, '" + std::string(word) + "', is no fused pair");
    EXPECT_EQ(problem.hint, "write (<pass>;<pass>) without blanks, for example (0F3;1B0)");
  }
}

TEST(Notation, RefusesWhatIsNoPassAndQuotesIt) {
  EXPECT_EQ(problem_of("0F0 F1").message, "word 2, 'F1', is no pass");
  for (const std::string_view line : {"0", "F", "0F", "F0", "0f0", "0X0", "-1F0", "0F-1", "+1F0", "0F0B",
                                      "0F0,0B0", "0 F 0", "1.5F0", "99999999999F0", "0F99999999999"}) {
    SCOPED_TRACE(line);
    EXPECT_NE(problem_of(line).message.find("is no pass"), std::string::npos);
    EXPECT_EQ(problem_of(line).hint,
              "write <stage><F|B|I|W|R><micro-batch> with blanks between, for example 0F3");
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
