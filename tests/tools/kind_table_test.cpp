// Kinds of jobs: which sets they have, and what their errors are.
#include "tools/validation/kind_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/validation/published_sets.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;

const DataDirectory& repository() {
  static const DataDirectory data{.root = STAGECRAFT_SOURCE_DIR};
  return data;
}

// Every kind that the repository knows, with its sets; throws where the files are wrong.
std::vector<JobKind> shipped_kinds() {
  Diagnostics diagnostics;
  std::vector<JobKind> kinds = load_score_data(repository(), diagnostics).kinds;
  diagnostics.throw_if_errors();
  return kinds;
}

TEST(JobKinds, HaveEverySetOnceAndNoOther) {
  std::multiset<std::string> of_kinds, published;
  for (const JobKind& kind : shipped_kinds()) of_kinds.insert(kind.sets.begin(), kind.sets.end());
  for (const auto& file : published_files(repository())) published.insert(file.stem().string());
  EXPECT_EQ(of_kinds, published);
}

TEST(JobKinds, HaveTitlesOfTheirOwnThatFitALine) {
  std::set<std::string> titles;
  for (const JobKind& kind : shipped_kinds()) {
    EXPECT_TRUE(titles.insert(kind.title).second) << kind.title;
    EXPECT_LE(kind.title.size(), 48U) << kind.title;
  }
}

TEST(JobKinds, RefuseASetThatAnotherHasWhereItStands) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "kinds_that_share_a_set";
  const std::filesystem::path folder = root / "calibrate/validation/scoring";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(folder.parent_path());
  std::filesystem::copy(repository().root / "calibrate/validation/scoring", folder);
  std::ofstream(folder / "kinds.yaml") << "kinds:\n"
                                          "- {title: first, sets: [a, b]}\n"
                                          "- title: second\n"
                                          "  sets: [b]\n"
                                          "- {sets: [c], named: third}\n";
  Diagnostics diagnostics;
  (void)load_score_data({.root = root}, diagnostics);
  std::vector<std::string> found;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) found.push_back(one_line(diagnostic));
  EXPECT_THAT(found, testing::ElementsAre("kinds.sets: 'b' is of another kind, 'first'",
                                          "kinds.title: is required, but not given",
                                          "kinds.named: is not a known key"));
  EXPECT_EQ(4, diagnostics.sorted().front().where.line);
  std::filesystem::remove_all(root);
}

// A set that measured 1 s in each row, with errors of `percents`; what is within 10 % is inside its interval.
SetScore set_of(const std::string& name, std::initializer_list<double> percents) {
  SetScore set;
  set.name = name;
  set.profile = "card";
  for (const double percent : percents) {
    ScoredRow row;
    row.predicted = 1 + percent / 100;
    row.measured = 1;
    row.interval = {row.predicted - 0.1, row.predicted + 0.1};
    set.rows.push_back(row);
  }
  return set;
}

// Two kinds and a third without rows; a constant of the card was fitted on `fitted`.
ScoreData two_kinds() {
  ScoreData data;
  data.kinds = {{.title = "One kind", .sets = {"small", "large", "fitted"}},
                {.title = "Nobody's", .sets = {"absent", "empty"}},
                {.title = "Another", .sets = {"alone"}}};
  data.constants["card"] = {
      {.name = "gemm.scale", .low = 0, .high = 1, .site = false, .without = {}, .fitted_on = {"fitted"}}};
  return data;
}

std::vector<SetScore> six_sets() {
  return {set_of("alone", {-5}),          set_of("empty", {}),  set_of("fitted", {2, -4, 1}),
          set_of("large", {10.5, -5, 1}), set_of("mine", {50}), set_of("small", {20})};
}

TEST(KindScores, CountEachRowOnceWhateverItsSet) {
  const std::vector<KindScore> kinds = scores_by_kind(six_sets(), two_kinds());
  ASSERT_EQ(2U, kinds.size());  // a kind without rows is left out
  EXPECT_EQ("One kind", kinds[0].title);
  EXPECT_EQ(3U, kinds[0].sets());
  EXPECT_EQ(7U, kinds[0].rows());
  const PooledErrors& held_out = kinds[0].errors.held_out;
  EXPECT_EQ(2U, held_out.sets);
  EXPECT_NEAR((0.105 + 0.05 + 0.01 + 0.20) / 4, summarise(held_out.rows).mean_absolute, 1e-12);
  EXPECT_NEAR((0.105 - 0.05 + 0.01 + 0.20) / 4, summarise(held_out.rows).bias, 1e-12);
  EXPECT_NEAR(0.5, held_out.coverage(), 1e-12);
  EXPECT_EQ(3U, kinds[0].errors.fitted.rows.size());
  EXPECT_NEAR(0.07 / 3, summarise(kinds[0].errors.fitted.rows).mean_absolute, 1e-12);
}

TEST(KindScores, AddUpToThoseOfAllSets) {
  std::vector<SetScore> sets = six_sets();
  std::erase_if(sets, [](const SetScore& set) { return set.name == "mine"; });  // of no kind
  const ErrorsByFit all = errors_by_fit(sets, two_kinds());
  ErrorsByFit sum;
  for (const KindScore& kind : scores_by_kind(sets, two_kinds())) {
    for (const auto& [of_kind, of_all] :
         {std::pair{&kind.errors.fitted, &sum.fitted}, std::pair{&kind.errors.held_out, &sum.held_out}}) {
      of_all->sets += of_kind->sets;
      of_all->covered += of_kind->covered;
      of_all->rows.insert(of_all->rows.end(), of_kind->rows.begin(), of_kind->rows.end());
    }
  }
  for (const auto& [of_all, of_kinds] :
       {std::pair{&all.fitted, &sum.fitted}, std::pair{&all.held_out, &sum.held_out}}) {
    EXPECT_EQ(of_all->sets, of_kinds->sets);
    EXPECT_EQ(of_all->covered, of_kinds->covered);
    EXPECT_THAT(of_kinds->rows, testing::UnorderedElementsAreArray(of_all->rows));
  }
}

TEST(KindScores, AreNoneOfASingleSet) {
  EXPECT_TRUE(scores_by_kind({set_of("small", {20}), set_of("empty", {})}, two_kinds()).empty());
  EXPECT_EQ("", kind_table_text({}));
  EXPECT_EQ("", kind_table_markdown({}));
}

TEST(KindTable, HasTheTitleOfAKindAboveItsFigures) {
  const std::string text = kind_table_text(scores_by_kind(six_sets(), two_kinds()));
  EXPECT_THAT(text, HasSubstr("\n"
                              "  kind of job  sets  rows   MAPE    bias  median  inside  fitted   MAPE\n"
                              "  One kind\n"
                              "                  3     7  9.1 %  +6.6 %   7.8 %    50 %       3  2.3 %\n"
                              "  Another\n"
                              "                  1     1  5.0 %  -5.0 %   5.0 %   100 %       –      –\n"));
}

TEST(KindTable, OfAPageIsTheSame) {
  const std::string page = kind_table_markdown(scores_by_kind(six_sets(), two_kinds()));
  EXPECT_THAT(page, HasSubstr("\n| One kind | 3 | 7 | **9.1 %** | +6.6 % | 7.8 % | 50 % | 3 | 2.3 % |\n"
                              "| Another | 1 | 1 | **5.0 %** | -5.0 % | 5.0 % | 100 % | – | – |\n"));
}

TEST(KindTable, OfFittedRowsAloneHasNoOtherErrors) {
  ScoreData data = two_kinds();
  data.constants["card"].front().fitted_on = {"fitted", "alone"};
  EXPECT_THAT(kind_table_markdown(scores_by_kind(six_sets(), data)),
              HasSubstr("\n| Another | 1 | 1 | – | – | – | – | 1 | 5.0 % |\n"));
}

}  // namespace
}  // namespace stagecraft
