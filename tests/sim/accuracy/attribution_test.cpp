#include "sim/accuracy/attribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stagecraft {
namespace {

// Forty rows with shares of two families; the first really takes `first` longer, the second `second`.
std::vector<AttributionRow> rows_of(double first, double second) {
  std::vector<AttributionRow> rows;
  for (int i = 0; i < 40; ++i) {
    const double share = 0.1 + 0.02 * i;
    const double noise = (i % 2 == 0 ? 1 : -1) * 0.001;
    rows.push_back({.shares = {share, 1 - share}, .excess = first * share + second * (1 - share) + noise});
  }
  return rows;
}

TEST(Attribution, FindsTheFamilyThatTakesLonger) {
  const Attribution found = attribute_errors(rows_of(0.2, 0.0));
  ASSERT_EQ(found.families.size(), 2u);
  EXPECT_NEAR(found.families[0].delta, 0.2, 0.005);
  EXPECT_NEAR(found.families[1].delta, 0.0, 0.005);
  EXPECT_LT(found.families[0].standard_error, 0.01);
  EXPECT_GT(found.explained, 0.99);
}

TEST(Attribution, OfFamiliesThatNeverOccurSaysOnlyThePrior) {
  std::vector<AttributionRow> rows = rows_of(0.1, 0.1);
  for (AttributionRow& row : rows) row.shares.push_back(0);
  const Attribution found = attribute_errors(rows);
  EXPECT_EQ(found.families[2].delta, 0);
  EXPECT_NEAR(found.families[2].standard_error, kPriorDelta, 1e-12);
  EXPECT_EQ(found.families[2].contribution, 0);
}

TEST(Attribution, IsNotBentByOneOddRow) {
  std::vector<AttributionRow> rows = rows_of(0.05, 0.0);
  rows[20].excess += 1.0;
  EXPECT_NEAR(attribute_errors(rows).families[0].delta, 0.05, 0.05);
}

TEST(Attribution, OfTwoRowsIsEmpty) {
  EXPECT_TRUE(
      attribute_errors({{.shares = {1}, .excess = 0.1}, {.shares = {1}, .excess = 0.1}}).families.empty());
}

}  // namespace
}  // namespace stagecraft
