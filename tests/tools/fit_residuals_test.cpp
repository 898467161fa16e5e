// What predictions leave unexplained, as JSON.
#include "tools/validation/fit_residuals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace stagecraft {
namespace {

using testing::HasSubstr;
using testing::Not;

ProfileResiduals residuals() {
  ProfileResiduals profile{.profile = "mine",
                           .rows = 3,
                           .of = {},
                           .residuals = {},
                           .now = {.share = 0.75, .median_width = 0.25},
                           .left_out = {.share = 0.5, .median_width = 0.125}};
  profile.residuals.run = {.value = 0.0625, .provenance = Provenance::kAnalytic};
  return profile;
}

TEST(ResidualsJson, HasTheSharesOfAProfileWithTheirProvenance) {
  const std::string json = residuals_json(residuals());
  EXPECT_THAT(json, HasSubstr("{\"schema\":\"stagecraft.residuals/1\",\"profile\":\"mine\",\"rows\":3,"));
  EXPECT_THAT(json, HasSubstr("\"now\":{\"coverage_90\":0.75,\"median_width\":0.25}"));
  EXPECT_THAT(json, HasSubstr("\"left_out\":{\"coverage_90\":0.5,\"median_width\":0.125}"));
  for (const std::string_view unnamed : kUnnamedNames)
    EXPECT_THAT(json, HasSubstr("\"" + std::string(unnamed) + "\":{\"value\":"));
  EXPECT_THAT(json, HasSubstr("\"run\":{\"value\":0.0625,\"provenance\":\"analytic\"}"));
  for (const std::string_view family : kOpFamilyNames)
    EXPECT_THAT(json, HasSubstr("\"" + std::string(family) + "\":{\"value\":"));
}

TEST(ResidualsJson, NamesTheKinOfAProfileWithoutRows) {
  ProfileResiduals profile = residuals();
  profile.rows = 0;
  profile.of = "kin";
  EXPECT_THAT(residuals_json(profile), HasSubstr("\"rows\":0,\"as\":\"kin\","));
  EXPECT_THAT(residuals_json(profile), Not(HasSubstr("coverage_90")));
}

// Rows of compute alone, each off by `error`.
SetScore set_of(const std::string& name, int rows, double error) {
  SetScore score;
  score.name = name;
  score.profile = "mine";
  for (int i = 0; i < rows; ++i) {
    ScoredRow row;
    row.predicted = 1;
    row.measured = i % 2 == 0 ? 1 + error : 1 - error;
    row.shares.front() = 1;
    score.rows.push_back(row);
  }
  return score;
}

// A set whose bias a report tells in a note widens no interval.
TEST(FitResiduals, LeavesSetsWithABiasOut) {
  const std::vector<SetScore> alone{set_of("usual", 20, 0.05)};
  std::vector<SetScore> both = alone;
  both.push_back(set_of("gpt_oss", 20, 0.4));
  const auto compute = [](const std::vector<SetScore>& scores, const ScoreData& data) {
    return fit_residuals(scores, scores, data).profiles.at(0).residuals.families.front().value;
  };
  ScoreData data;
  data.biased = {"gpt_oss"};
  EXPECT_EQ(compute(both, data), compute(alone, {}));
  EXPECT_GT(compute(both, {}), compute(alone, {}));
}

TEST(BiasedSets, ArePublishedSets) {
  const DataDirectory data{.root = STAGECRAFT_SOURCE_DIR};
  Diagnostics diagnostics;
  const std::vector<std::string> biased = load_score_data(data, diagnostics).biased;
  diagnostics.throw_if_errors();
  EXPECT_FALSE(biased.empty());
  for (const std::string& set : biased)
    EXPECT_TRUE(std::filesystem::exists(data.root / "calibrate/validation" / (set + ".yaml"))) << set;
}

}  // namespace
}  // namespace stagecraft
