// The command line of stagecraft-calibrate.
#include "calibrate/bench/options.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    (void)parse_options(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Options, MeasureForEightMinutesUnlessToldOtherwise) {
  EXPECT_EQ(parse_options({}).budget_seconds, 480);
  EXPECT_EQ(parse_options({"--budget", "90s"}).budget_seconds, 90);
  EXPECT_EQ(parse_options({"--budget=1h30m"}).budget_seconds, 5400);
  EXPECT_EQ(parse_options({"--budget", "none"}).budget_seconds, std::nullopt);
}

TEST(Options, QuickMeansNinetySecondsUnlessABudgetFollows) {
  EXPECT_EQ(parse_options({"--quick"}).budget_seconds, 90);
  EXPECT_EQ(parse_options({"--quick", "--budget", "2m"}).budget_seconds, 120);
}

TEST(Options, TakeFamiliesByName) {
  EXPECT_EQ(parse_options({"--families", "gemm,nccl"}).families, (std::vector<std::string>{"gemm", "nccl"}));
  EXPECT_TRUE(refusal({"--families", "gemm,softmax"}).starts_with("--families: no family \"softmax\""));
  EXPECT_TRUE(refusal({"--families", "gemm,"}).starts_with("--families: no family \"\""));
}

TEST(Options, AreEmptyWhereALauncherOrTheFirstDeviceDecides) {
  const CalibrateOptions options = parse_options({});
  EXPECT_FALSE(options.device || options.rank || options.ranks || options.nodes);
  EXPECT_EQ(parse_options({"--device", "3"}).device, 3);
}

TEST(Options, RefuseWhatTheyDoNotKnow) {
  EXPECT_TRUE(refusal({"--sched"}).starts_with("unknown option --sched\nusage: stagecraft-calibrate"));
  EXPECT_EQ(refusal({"--out"}), "--out needs FILE");
  EXPECT_EQ(refusal({"--list=yes"}), "--list takes no value");
  EXPECT_EQ(refusal({"--device", "first"}), "--device first: a number from 0 is expected");
  EXPECT_EQ(refusal({"--rank", "-1"}), "--rank -1: a number from 0 is expected");
  EXPECT_EQ(refusal({"--budget", "long"}), "--budget long: a duration such as 8m, 90s or 1h30m is expected");
}

TEST(Options, AreAllNamedInTheHelpButThoseOfTheProgramItself) {
  const std::string text = usage();
  for (const char* option :
       {"--out FILE", "--budget TIME", "--families A,B", "--shapes FILE", "--list", "--check", "--quick",
        "--id-file FILE", "--rank N", "--ranks N", "--nodes N", "--device N"})
    EXPECT_NE(text.find(option), std::string::npos) << option;
  EXPECT_EQ(text.find("--restarts"), std::string::npos);
}

}  // namespace
}  // namespace stagecraft
