// What predictions leave unexplained, as JSON.
#include "tools/validation/fit_residuals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace stagecraft
