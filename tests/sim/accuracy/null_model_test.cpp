#include "sim/accuracy/null_model.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stagecraft {
namespace {

// 4 stages, 8 micro-batches: 3/8 of the work is idle; a split backward fills two thirds of it.
TEST(NullBubble, IsTheClosedForm) {
  EXPECT_DOUBLE_EQ(null_bubble(4, 8, 1, false), 1 + 3.0 / 8);
  EXPECT_DOUBLE_EQ(null_bubble(4, 8, 3, false), 1 + 1.0 / 8);
  EXPECT_DOUBLE_EQ(null_bubble(4, 8, 1, true), 1 + 1.0 / 8);
  EXPECT_EQ(null_bubble(1, 8, 1, false), 1);
}

// Rates 10, 20 and 40 FLOP/s: the median is 20, so the first is predicted at half its time.
TEST(NullModel, TakesTheMedianRateOfItsRows) {
  const std::vector<NullRow> rows = {{.flops = 100, .bubble = 1, .measured = 10},
                                     {.flops = 100, .bubble = 1, .measured = 5},
                                     {.flops = 400, .bubble = 1, .measured = 10}};
  const NullModel model = fit_null_model(rows, false);
  EXPECT_DOUBLE_EQ(model.rate, 20);
  EXPECT_EQ(model.errors, (std::vector<double>{-0.5, 0, 1}));
}

TEST(NullModel, WithTheBubbleExplainsAnIdlePipeline) {
  const std::vector<NullRow> rows = {{.flops = 100, .bubble = 1, .measured = 10},
                                     {.flops = 100, .bubble = 2, .measured = 20}};
  EXPECT_EQ(fit_null_model(rows, true).errors, (std::vector<double>{0, 0}));
}

TEST(NullModel, KnowsNothingOfAbstractStages) {
  const std::vector<NullRow> rows = {{.flops = 0, .bubble = 1, .measured = 1}};
  EXPECT_EQ(fit_null_model(rows, false).rate, 0);
}

}  // namespace
}  // namespace stagecraft
