#include "base/diagnostic.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace stagecraft {
namespace {

Diagnostic pipeline_mistake() {
  return {.code = "not-divisible",
          .where = {.file = "gpt3.yaml", .line = 13, .column = 13},
          .path = "parallelism.pipeline",
          .message = "7 stages do not divide model.layers = 96",
          .hint = "6 or 8 would; or give parallelism.stage_layers"};
}

TEST(Diagnostic, IsPlacePathMessageAndHint) {
  EXPECT_EQ(render(pipeline_mistake()),
            "gpt3.yaml:13:13: error: parallelism.pipeline: 7 stages do not divide model.layers = 96\n"
            "  hint: 6 or 8 would; or give parallelism.stage_layers");
}

TEST(Diagnostic, ShowsTheLineWithACaret) {
  EXPECT_EQ(render(pipeline_mistake(), "  pipeline: 7"),
            "gpt3.yaml:13:13: error: parallelism.pipeline: 7 stages do not divide model.layers = 96\n"
            "   13 |   pipeline: 7\n"
            "      |             ^\n"
            "  hint: 6 or 8 would; or give parallelism.stage_layers");
}

TEST(Diagnostic, PutsTheCaretBelowTheCharacterNotTheByte) {
  const Diagnostic mistake{.where = {.file = "a", .line = 1, .column = 5}, .message = "m"};
  EXPECT_EQ(render(mistake, "\u00e9: x"), "a:1:5: error: m\n    1 | \u00e9: x\n      |    ^");
}

TEST(Diagnostic, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(render({.where = {.file = "a.yaml"}, .message = "no such file"}), "a.yaml: error: no such file");
  EXPECT_EQ(render({.where = {.file = "a.yaml", .line = 3}, .message = "m"}), "a.yaml:3: error: m");
  EXPECT_EQ(render({.severity = Severity::kWarning, .message = "m"}), "warning: m");
}

TEST(Diagnostic, PutsNotesBeforeTheHint) {
  const Diagnostic mistake{
      .where = {.file = "a", .line = 2, .column = 1},
      .path = "k",
      .message = "is given twice",
      .hint = "keep one",
      .notes = {{.where = {.file = "a", .line = 1, .column = 1}, .message = "first given here"}}};
  EXPECT_EQ(render(mistake),
            "a:2:1: error: k: is given twice\n  note: a:1:1: first given here\n  hint: keep one");
}

TEST(Diagnostic, NeverPassesControlCharactersOn) {
  EXPECT_EQ(render({.path = "a\nb", .message = "\x1b[31m"}), "error: a\\nb: \\x1b[31m");
}

TEST(Diagnostic, IsPathAndMessageOnOneLine) {
  EXPECT_EQ(one_line(pipeline_mistake()), "parallelism.pipeline: 7 stages do not divide model.layers = 96");
  EXPECT_EQ(one_line({.message = "no such file"}), "no such file");
}

Diagnostic at(int line, const char* message) {
  return {.where = {.file = "f", .line = line}, .message = message};
}

TEST(Diagnostics, AreSortedByPlaceAndKeepTheOrderOfArrivalThere) {
  Diagnostics all;
  all.error(at(2, "third"));
  all.error(at(1, "first"));
  all.warning(at(1, "second"));
  std::vector<std::string> messages;
  for (const Diagnostic& item : all.sorted()) messages.push_back(item.message);
  EXPECT_EQ(messages, (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_EQ(all.error_count(), 2u);
}

TEST(Diagnostics, HaveAFirstErrorBehindWarnings) {
  Diagnostics all;
  all.warning(at(1, "a warning"));
  EXPECT_EQ(first_error(all.items()), nullptr);
  all.error(at(2, "first"));
  all.error(at(3, "second"));
  EXPECT_EQ(first_error(all.items()), &all.items().at(1));
}

TEST(ErrorWatch, IsCleanUntilAnErrorComes) {
  Diagnostics all;
  all.error(at(1, "before"));
  const ErrorWatch watch(all);
  all.warning(at(2, "a warning"));
  EXPECT_TRUE(watch.clean());
  all.error(at(3, "an error"));
  EXPECT_FALSE(watch.clean());
}

TEST(Diagnostics, AreTakenFromOthersAsTheyCame) {
  Diagnostics all, others;
  all.error(at(3, "first"));
  others.warning(at(2, "second"));
  others.error(at(1, "third"));
  all.add_all(others);
  all.add_all({});
  Diagnostic second = at(2, "second");
  second.severity = Severity::kWarning;
  EXPECT_EQ(all.items(), (std::vector<Diagnostic>{at(3, "first"), second, at(1, "third")}));
}

TEST(Diagnostics, WarningsAloneThrowNothing) {
  Diagnostics all;
  all.warning(at(1, "w"));
  EXPECT_FALSE(all.has_errors());
  EXPECT_NO_THROW(all.throw_if_errors());
}

TEST(Diagnostics, OneErrorThrowsEverythingSorted) {
  Diagnostics all;
  all.error(at(2, "e"));
  all.warning(at(1, "w"));
  try {
    all.throw_if_errors();
    FAIL() << "errors were forgotten";
  } catch (const ScenarioError& error) {
    EXPECT_STREQ(error.what(), "f:1: warning: w\nf:2: error: e");
    EXPECT_EQ(error.diagnostics().size(), 2u);
  }
}

// The keys of `stagecraft.error/1` in their order.
TEST(Diagnostics, AreOneJsonDocument) {
  EXPECT_EQ(render_json({pipeline_mistake()}),
            R"({"schema":"stagecraft.error/1","errors":[{"code":"not-divisible","severity":"error",)"
            R"("file":"gpt3.yaml","line":13,"column":13,"path":"parallelism.pipeline",)"
            R"("message":"7 stages do not divide model.layers = 96",)"
            R"("hint":"6 or 8 would; or give parallelism.stage_layers"}]})");
  EXPECT_EQ(render_json({}), R"({"schema":"stagecraft.error/1","errors":[]})");
  EXPECT_EQ(render_json({}, "a.yaml"), R"({"schema":"stagecraft.error/1","scenario":"a.yaml","errors":[]})");
}

TEST(Diagnostics, BeginTheirDocumentWithTheErrors) {
  const Diagnostic warning{.severity = Severity::kWarning, .where = {.file = "a.yaml"}, .message = "assumed"};
  const std::string document = render_json({warning, pipeline_mistake()});
  EXPECT_LT(document.find("7 stages do not divide"), document.find("assumed"));
}

}  // namespace
}  // namespace stagecraft
