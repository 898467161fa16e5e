#include "sim/study/constraint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::map<std::string, Fact> kFacts = {{"tensor", 8.0},
                                            {"pipeline", 4.0},
                                            {"schedule", std::string("zb-h1")},
                                            {"sequence_parallel", true},
                                            {"buffer", std::string("512 MiB")},
                                            {"stage_layers", Fact()}};

Constraint::Verdict verdict(const std::string& text) {
  Diagnostics diagnostics;
  const auto constraint = Constraint::parse(text, {.file = "s.yaml", .line = 9, .column = 8}, diagnostics);
  if (!constraint) return {.mistake = diagnostics.items().at(0).message};
  std::vector<Fact> facts;
  for (const std::string& name : constraint->names()) facts.push_back(kFacts.at(name));
  return constraint->holds(facts);
}

TEST(Constraint, CountsLikeAPencil) {
  for (const char* text : {"tensor * pipeline <= 64", "tensor + pipeline == 12", "tensor - pipeline * 2 == 0",
                           "tensor % 3 == 2", "(tensor - pipeline) * 2 == 8", "tensor / pipeline == 2",
                           "-tensor < 0", "max(tensor, pipeline, 1) == 8", "min(tensor, 3) == 3",
                           "abs(-4) == pipeline", "floor(2.9) == 2 and ceil(2.1) == 3", "1e3 == 1000"})
    EXPECT_TRUE(verdict(text).holds) << text << ": " << verdict(text).mistake;
}

TEST(Constraint, LogicBindsWeakerThanRelationsAndAndBeforeOr) {
  EXPECT_TRUE(verdict("true or false and false").holds);
  EXPECT_FALSE(verdict("not true or false").holds);
  EXPECT_TRUE(verdict("tensor == 8 && !(pipeline == 8) || false").holds);
  EXPECT_TRUE(verdict("sequence_parallel and tensor > 1").holds);
}

TEST(Constraint, TextsCompareByEqualityAndQuantitiesBySize) {
  EXPECT_TRUE(verdict("schedule != 'gpipe'").holds);
  EXPECT_TRUE(verdict("schedule in ['zb-h1', \"zb-h2\"]").holds);
  EXPECT_FALSE(verdict("tensor in [1, 2, 4]").holds);
  EXPECT_TRUE(verdict("buffer < '1 GiB'").holds);
  EXPECT_TRUE(verdict("buffer == '0.5 GiB'").holds);
}

TEST(Constraint, LogicStopsWhereTheAnswerIsKnown) {
  EXPECT_FALSE(verdict("tensor == 1 and 1 / 0 == 1").holds);
  EXPECT_EQ(verdict("tensor == 1 and 1 / 0 == 1").mistake, "");
}

TEST(Constraint, NamesEachNameOnce) {
  Diagnostics diagnostics;
  const auto constraint = Constraint::parse("a.b * c <= a.b", {}, diagnostics);
  EXPECT_THAT(constraint->names(), ElementsAre("a.b", "c"));
}

TEST(Constraint, SaysWhatIsNoExpression) {
  EXPECT_THAT(verdict("").mistake, HasSubstr("it is empty"));
  EXPECT_THAT(verdict("tensor *").mistake, HasSubstr("something is missing at the end"));
  EXPECT_THAT(verdict("(tensor").mistake, HasSubstr("')' is missing at the end"));
  EXPECT_THAT(verdict("tensor = 8").mistake, HasSubstr("equality is written =="));
  EXPECT_THAT(verdict("1 < tensor < 9").mistake, HasSubstr("relations do not chain"));
  EXPECT_THAT(verdict("schedule == 1f1b").mistake, HasSubstr("text stands in quotes"));
  EXPECT_THAT(verdict("schedule == 'zb").mistake, HasSubstr("is not closed"));
  EXPECT_THAT(verdict("tensor 8").mistake, HasSubstr("'8' is not expected here"));
  EXPECT_THAT(verdict("system('reboot')").mistake, HasSubstr("'(' is not expected here"));
  EXPECT_THAT(verdict("abs(1, 2) == 1").mistake, HasSubstr("abs takes one number"));
}

TEST(Constraint, SaysWhyItHasNoAnswer) {
  EXPECT_EQ(verdict("tensor").mistake, "'tensor' is a number, not true or false");
  EXPECT_EQ(verdict("schedule * 2 == 4").mistake, "'schedule' is a text, not a number");
  EXPECT_EQ(verdict("schedule == 4").mistake, "'schedule' is a text and a literal is a number");
  EXPECT_EQ(verdict("schedule < 'zzz'").mistake, "'schedule' and 'zzz' have no order");
  EXPECT_EQ(verdict("stage_layers == 4").mistake, "'stage_layers' has no single value");
  EXPECT_EQ(verdict("tensor % (pipeline - 4) == 0").mistake, "it divides by 0");
}

TEST(Constraint, AHostileTextEndsSoon) {
  EXPECT_THAT(verdict(std::string(100'000, '(')).mistake, HasSubstr("nested too deeply"));
  EXPECT_THAT(verdict(std::string(100'000, '!')).mistake, HasSubstr("nested too deeply"));
  EXPECT_THAT(verdict(std::string(100'000, '-')).mistake, HasSubstr("nested too deeply"));
  std::string sum = "1";
  for (int i = 0; i < 10'000; ++i) sum += "+1";
  EXPECT_THAT(verdict(sum).mistake, HasSubstr("it is too long"));
}

}  // namespace
}  // namespace stagecraft
