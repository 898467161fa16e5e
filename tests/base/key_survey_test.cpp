#include "base/key_survey.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/yaml.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;

const std::array<std::string, 2> kKinds{"disk", "fan"};

// A reader as there are many: {kind, size of disks, speed of fans, parts: [{count}]}.
void read(const YamlNode& root, Diagnostics& diagnostics) {
  YamlMap map(&root, "", root.where, diagnostics);
  YamlMap part = map.map("part");
  if (part.choice("kind", kKinds, 0) == 0)
    (void)part.bytes("size");
  else
    (void)part.number("speed", {.min = 0, .max = 1, .fallback = 0.5});
  part.finish();
  if (const YamlNode* list = map.get("list"))
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      YamlMap item(&list->items[i], "list." + std::to_string(i), list->where, diagnostics);
      (void)item.integer("count", {.min = 1, .fallback = 1});
      item.finish();
    }
  map.finish();
}

KeySurvey survey(const std::string& text, const std::string& document = "file") {
  KeySurvey keys(document);
  Diagnostics diagnostics;
  diagnostics.survey_keys(&keys);
  const auto root = parse_yaml(text, "file", diagnostics);
  read(*root, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors());
  return keys;
}

std::vector<std::string> paths(const KeySurvey& keys) {
  std::vector<std::string> found;
  for (const KeySurvey::Entry& entry : keys.entries()) found.push_back(entry.path);
  return found;
}

TEST(KeySurvey, KnowsEveryKeyThatAReaderAsksForInItsOrder) {
  EXPECT_THAT(paths(survey("part: {size: 1 GB}\nlist: [{}, {count: 2}]")),
              ElementsAre("part", "part.kind", "part.size", "list", "list[].count"));
}

TEST(KeySurvey, KnowsKindsLimitsWordsAndFallbacks) {
  const KeySurvey keys = survey("part: {kind: fan}\nlist: [{}]");
  const SurveyedKey& kind = keys.entries()[1].by_choice.at("");
  ASSERT_EQ(kind.forms.size(), 1);
  EXPECT_EQ(kind.forms.front().kind, KeyForm::Kind::kChoice);
  EXPECT_THAT(kind.forms.front().words, ElementsAre("disk", "fan"));
  EXPECT_THAT(kind.fallbacks, ElementsAre("disk"));
  const SurveyedKey& speed = keys.entries()[2].by_choice.at("kind: fan");
  EXPECT_EQ(speed.forms, std::vector{(KeyForm{.kind = KeyForm::Kind::kNumber, .min = 0, .max = 1})});
  EXPECT_THAT(speed.fallbacks, ElementsAre("0.5"));
}

TEST(KeySurvey, KnowsUnderWhichWordAKeyIsAskedForAndThatItWasAbsent) {
  const KeySurvey keys = survey("part: {kind: disk, size: 1 GB}");
  const SurveyedKey& size = keys.entries()[2].by_choice.at("kind: disk");
  EXPECT_TRUE(size.asked_without_fallback);
  EXPECT_FALSE(size.seen_absent);
  EXPECT_TRUE(keys.entries()[3].by_choice.at("").seen_absent);  // list
}

TEST(KeySurvey, LeavesTheRootsOfOtherDocumentsOut) {
  EXPECT_THAT(paths(survey("part: {size: 1 GB}", "another file")), ElementsAre());
}

TEST(KeySurvey, ChangesNothingThatAReaderReads) {
  Diagnostics with, without;
  KeySurvey keys("file");
  with.survey_keys(&keys);
  for (Diagnostics* diagnostics : {&with, &without})
    read(*parse_yaml("part: {kind: disc}\nlits: 3", "file", *diagnostics), *diagnostics);
  EXPECT_EQ(with.items(), without.items());
  EXPECT_EQ(with.error_count(), 3);  // disc, no size, lits
}

}  // namespace
}  // namespace stagecraft
