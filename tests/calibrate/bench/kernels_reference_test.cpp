// The float64 references: backward passes are the derivatives of the forward ones, small cases are done by
// pencil.
#include "calibrate/bench/kernels_reference.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "calibrate/bench/kernels_rng.hpp"

namespace stagecraft::reference {
namespace {

// Numbers in [-2, 2) from a linear congruence (Numerical Recipes' constants): no two alike, none zero.
Row numbers(std::size_t count, std::uint32_t seed) {
  Row row(count);
  for (double& v : row) {
    seed = seed * 1664525U + 1013904223U;
    v = static_cast<double>(seed >> 8) / (1 << 22) - 2;
  }
  return row;
}

using Forward = std::function<BoundedRow(const Row&)>;

// d/dx[i] of sum_j dy[j] * forward(x)[j], by central differences.
double derivative(const Forward& forward, const Row& x, const Row& dy, std::size_t i) {
  constexpr double kStep = 1e-5;
  const auto value = [&](double step) {
    Row moved = x;
    moved[i] += step;
    const BoundedRow y = forward(moved);
    double sum = 0;
    for (std::size_t j = 0; j < y.size(); ++j) sum += dy[j] * y[j].value;
    return sum;
  };
  return (value(kStep) - value(-kStep)) / (2 * kStep);
}

void expect_gradient(const Forward& forward, const Row& x, const Row& dy, const BoundedRow& gradient) {
  ASSERT_EQ(gradient.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NEAR(gradient[i].value, derivative(forward, x, dy, i), 1e-7);
    EXPECT_GE(gradient[i].magnitude, std::abs(gradient[i].value) * (1 - 1e-12));
  }
}

TEST(Philox, GivesTheKnownAnswersOfItsAuthors) {  // Random123, kat_vectors, philox4x32 with 10 rounds
  const auto expect = [](const Random128& got, std::array<std::uint32_t, 4> wanted) {
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(got.word[i], wanted[i]);
  };
  expect(philox({{0, 0, 0, 0}}, 0, 0), {0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
  constexpr std::uint32_t kOnes = 0xffffffffU;
  expect(philox({{kOnes, kOnes, kOnes, kOnes}}, kOnes, kOnes),
         {0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU});
  expect(philox({{0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}}, 0xa4093822U, 0x299f31d0U),
         {0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U});
}

TEST(Dropout, DropsTheShareThatItIsAskedFor) {
  constexpr std::int64_t kCount = 80000;
  double kept = 0;
  for (const double m : dropout_mask(kCount, {.first_element = 0, .seed = 3, .threshold = 16384})) kept += m;
  // Binomial with p = 3/4: standard deviation sqrt(n / 4 * 3 / 4) = 122; four of them.
  EXPECT_NEAR(kept, 0.75 * kCount, 490);
}

TEST(Dropout, KeepsAllAtZeroAndNothingAtOne) {
  for (const double m : dropout_mask(64, {.first_element = 8, .seed = 3, .threshold = 0})) EXPECT_EQ(m, 1);
  for (const double m : dropout_mask(64, {.first_element = 8, .seed = 3, .threshold = 65536}))
    EXPECT_EQ(m, 0);
}

TEST(Dropout, MaskOfARowIsThePartOfTheMaskOfTheTensor) {
  const Row whole = dropout_mask(64, {.first_element = 0, .seed = 9, .threshold = 30000});
  const Row second = dropout_mask(32, {.first_element = 32, .seed = 9, .threshold = 30000});
  EXPECT_EQ(Row(whole.begin() + 32, whole.end()), second);
}

TEST(Worst, IsZeroForTheExactResultAndInfiniteForNaN) {
  const BoundedRow wanted = {{1, 1}, {-2, 4}};
  const Precision precision{.unit = 0x1p-8, .roundings = 1};
  EXPECT_EQ(worst(Row{1, -2}, wanted, precision), 0);
  EXPECT_EQ(worst(Row{1, std::nan("")}, wanted, precision), std::numeric_limits<double>::infinity());
  EXPECT_EQ(worst(Row{1}, wanted, precision), std::numeric_limits<double>::infinity());
}

TEST(Worst, IsOneAtTheBound) {  // (1 + 1) * 2^-8 * 4 = 1/32
  const BoundedRow wanted = {{-2, 4}};
  EXPECT_NEAR(worst(Row{-2 + 1.0 / 32}, wanted, {.unit = 0x1p-8, .roundings = 1}), 1, 1e-12);
}

TEST(BiasGelu, BackwardIsTheDerivativeOfForward) {
  const Row x = numbers(16, 1), bias = numbers(16, 2), dy = numbers(16, 3);
  expect_gradient([&](const Row& v) { return bias_gelu_forward(v, bias); }, x, dy,
                  bias_gelu_backward(dy, x, bias));
}

TEST(BiasGelu, IsHalfOfItsArgumentPlusAnEvenFunction) {  // gelu(x) - gelu(-x) = x
  for (const double x : numbers(16, 4)) EXPECT_NEAR(gelu(x) - gelu(-x), x, 1e-15);
}

TEST(Swiglu, BackwardIsTheDerivativeOfForward) {
  const Row x = numbers(16, 5), dy = numbers(8, 6);
  expect_gradient([](const Row& v) { return swiglu_forward(v); }, x, dy, swiglu_backward(dy, x));
}

TEST(BiasDropoutAdd, KeepsTheResidualWhereDropped) {
  const BoundedRow y = bias_dropout_add(Row{1, 1}, Row{2, 2}, Row{10, 10}, Row{0, 1}, 2.0);
  EXPECT_EQ(y[0].value, 10);
  EXPECT_EQ(y[1].value, 16);
}

TEST(CausalSoftmax, SumsToOneOverTheKeysSeenAndIsZeroBeyond) {
  const Row x = numbers(8, 7);
  for (std::int64_t query = 0; query < 8; ++query) {
    const BoundedRow y = causal_softmax(x, query, 0.5);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      sum += y[i].value;
      if (static_cast<std::int64_t>(i) > query) {
        EXPECT_EQ(y[i].value, 0);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-14);
  }
}

TEST(CausalSoftmax, BackwardIsTheDerivativeOfForward) {
  const Row x = numbers(12, 8), dy = numbers(12, 9);
  Row y;
  for (const Bounded& b : causal_softmax(x, 8, 0.7)) y.push_back(b.value);
  expect_gradient([](const Row& v) { return causal_softmax(v, 8, 0.7); }, x, dy,
                  causal_softmax_backward(dy, y, 0.7));
}

TEST(Norm, BackwardIsTheDerivativeOfForward) {
  const Row x = numbers(24, 10), weight = numbers(24, 11), bias = numbers(24, 12), dy = numbers(24, 13);
  expect_gradient([&](const Row& v) { return norm(v, weight, bias); }, x, dy,
                  norm_backward({dy, x, weight, {}, true}));
  expect_gradient([&](const Row& v) { return norm(v, weight, {}); }, x, dy,
                  norm_backward({dy, x, weight, {}, false}));
}

TEST(Norm, LayerNormHasMeanZeroAndRmsNormMeanSquareOne) {
  const Row x = numbers(64, 14), ones(64, 1.0), zeros(64, 0.0);
  double sum = 0, squares = 0;
  for (const Bounded& b : norm(x, ones, zeros)) sum += b.value;
  for (const Bounded& b : norm(x, ones, {})) squares += b.value * b.value;
  EXPECT_NEAR(sum, 0, 1e-12);
  EXPECT_NEAR(squares / 64, 1, 1e-4);  // the 1e-5 under the root
}

TEST(Norm, ResidualGradientIsAdded) {
  const Row x = numbers(8, 15), weight = numbers(8, 16), dy = numbers(8, 17), branch(8, 3.0);
  const BoundedRow with = norm_backward({dy, x, weight, branch, true}),
                   without = norm_backward({dy, x, weight, {}, true});
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(with[i].value, without[i].value + 3, 1e-12);
}

TEST(Rope, BackwardTurnsBack) {
  const Row x = numbers(8, 18), cosine = {0.6, 0.8, 1, 0}, sine = {0.8, 0.6, 0, 1};
  Row turned, back;
  for (const Bounded& b : rope(x, cosine, sine, false)) turned.push_back(b.value);
  for (const Bounded& b : rope(turned, cosine, sine, true)) back.push_back(b.value);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(back[i], x[i], 1e-14);
  EXPECT_NEAR(turned[3], -x[7], 1e-15);  // a quarter turn: (a, b) -> (-b, a)
  EXPECT_NEAR(turned[7], x[3], 1e-15);
}

TEST(CrossEntropy, OfTwoEqualLogitsIsLogTwo) {
  const LogitSums sums = cross_entropy(Row{3, 3}, 1);
  EXPECT_NEAR(std::log(sums.sum) + sums.maximum - sums.target, std::log(2.0), 1e-15);
  EXPECT_EQ(cross_entropy(Row{3, 3}, 2).target, 0);  // on another rank
}

TEST(CrossEntropy, BackwardIsTheDerivativeOfTheLoss) {
  const Row x = numbers(10, 19);
  const auto loss = [](const Row& v) {
    const LogitSums s = cross_entropy(v, 4);
    return BoundedRow{{std::log(s.sum) + s.maximum - s.target, 1}};
  };
  expect_gradient(loss, x, Row{0.25}, cross_entropy_backward(x, 4, 0.25));
}

TEST(Adam, FirstStepMovesByTheRate) {
  // m = 0.1 g, v = 0.05 g^2; corrected by 1 - beta both are g and g^2, so the move is rate * sign(g).
  const AdamNumbers step{.rate = 0.5,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .epsilon = 0,
                         .decay = 0.1,
                         .correction1 = 0.1,
                         .correction2 = 0.05};
  const AdamState after = adam(-4, {{10, 0}, {0, 0}, {0, 0}}, step);
  EXPECT_NEAR(after.weight.value, 10 * (1 - 0.05) + 0.5, 1e-12);
  EXPECT_NEAR(after.first.value, -0.4, 1e-15);
  EXPECT_NEAR(after.second.value, 0.8, 1e-15);
}

TEST(Attention, OfOneKeyIsItsValue) {
  const std::vector<Row> keys = {{1, 2}}, values = {{5, 7}};
  const BoundedRow o = attention({Row{3, 4}, keys, values, 0.5});
  EXPECT_EQ(o[0].value, 5);
  EXPECT_EQ(o[1].value, 7);
}

TEST(Attention, OfEqualKeysIsTheMeanOfTheValues) {
  const std::vector<Row> keys = {{1, 2}, {1, 2}}, values = {{5, 7}, {-1, 9}};
  const BoundedRow o = attention({Row{3, 4}, keys, values, 0.5});
  EXPECT_NEAR(o[0].value, 2, 1e-15);
  EXPECT_NEAR(o[1].value, 8, 1e-15);
  EXPECT_NEAR(o[0].magnitude, 3, 1e-15);
}

}  // namespace
}  // namespace stagecraft::reference
