#include "sim/goodput/random.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "base/check.hpp"

namespace stagecraft {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

// The known answers that come with Random123 (kat_vectors, philox4x32 10): zeros, ones, digits of pi.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

// Draw 0 of the all-zero key is the low half of the first known answer, draw 1 the high half.
TEST(Stream, DrawsTheWordsOfItsBlocksInOrder) {
  Stream stream(StreamKey{});
  EXPECT_EQ(stream.bits(), 0xe169c58d6627e8d5u);
  EXPECT_EQ(stream.bits(), 0x9b00dbd8bc57ac4cu);
}

TEST(Stream, DrawsTheSameWhereverItBegins) {
  const StreamKey key{.seed = 7, .repeat = 3, .entity = 12, .purpose = Purpose::kTimeToFailure};
  Stream whole(key);
  for (std::uint32_t i = 0; i < 9; ++i) {
    Stream from_here(key, i);
    EXPECT_EQ(from_here.bits(), whole.bits()) << "draw " << i;
  }
}

TEST(Stream, DrawsSomethingElseForEveryPartOfItsKey) {
  const StreamKey key{.seed = 7, .repeat = 3, .entity = 12, .purpose = Purpose::kRepair, .process = 1};
  std::vector<StreamKey> others(6, key);
  others[0].seed = 8;
  others[1].seed = 7 + (std::uint64_t{1} << 32);
  others[2].repeat = 4;
  others[3].entity = 13;
  others[4].purpose = Purpose::kCause;
  others[5].process = 2;
  for (const StreamKey& other : others) EXPECT_NE(Stream(other).bits(), Stream(key).bits());
}

// The mean of n uniforms is 1/2 with a standard error of 1/sqrt(12 n).
TEST(Stream, IsUniformBetweenZeroAndOne) {
  Stream stream({.seed = 1});
  const int n = 100'000;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform();
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / n, 0.5, 4 / std::sqrt(12.0 * n));
}

// Mean and standard deviation of an exponential law are both 1/rate.
TEST(Stream, DrawsExponentialTimesOfMeanOneOverRate) {
  Stream stream({.seed = 2});
  const int n = 100'000;
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += to_seconds(stream.exponential(0.01));
  EXPECT_NEAR(sum / n, 100, 4 * 100 / std::sqrt(n));
}

TEST(Stream, NeverDrawsAnEventOfRateZero) {
  EXPECT_EQ(Stream({.seed = 2}).exponential(0), Duration::max());
}

// A draw of a smaller rate uses the same uniform: halving the rate doubles the time.
TEST(Stream, ScalesTimesWithTheRateOfTheSameDraw) {
  Stream often({.seed = 2}), seldom({.seed = 2});
  const double ratio = to_seconds(seldom.exponential(0.005)) / to_seconds(often.exponential(0.01));
  EXPECT_NEAR(ratio, 2, 1e-9);
}

// Weibull of shape k: mean scale·Γ(1 + 1/k), variance scale²·(Γ(1 + 2/k) − Γ(1 + 1/k)²).
TEST(Stream, DrawsWeibullTimesOfMeanOneOverRate) {
  for (const double shape : {0.62, 1.0, 2.0}) {
    SCOPED_TRACE(shape);
    Stream stream({.seed = 3});
    const int n = 100'000;
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += to_seconds(stream.weibull(shape, 0.001));
    const double mean_gamma = std::tgamma(1 + 1 / shape);
    const double deviation = 1000 * std::sqrt(std::tgamma(1 + 2 / shape) / (mean_gamma * mean_gamma) - 1);
    EXPECT_NEAR(sum / n, 1000, 4 * deviation / std::sqrt(n));
  }
}

// Half of the draws lie below the geometric middle: sqrt(10 s · 1000 s) = 100 s.
TEST(Stream, DrawsLogUniformTimesWithinTheirRange) {
  Stream stream({.seed = 4});
  const int n = 10'000;
  int below = 0;
  for (int i = 0; i < n; ++i) {
    const Duration time = stream.log_uniform(seconds(10), seconds(1000));
    ASSERT_GE(time, seconds(10));
    ASSERT_LE(time, seconds(1000));
    below += time < seconds(100) ? 1 : 0;
  }
  EXPECT_NEAR(below, n / 2, 4 * std::sqrt(n * 0.25));
}

TEST(Stream, ChoosesEachOfSeveralEquallyOften) {
  Stream stream({.seed = 5});
  const int n = 30'000;
  std::vector<int> seen(3);
  for (int i = 0; i < n; ++i) ++seen.at(static_cast<std::size_t>(stream.below(3)));
  for (const int count : seen) EXPECT_NEAR(count, n / 3, 4 * std::sqrt(n * (1.0 / 3) * (2.0 / 3)));
}

TEST(Stream, RefusesLawsThatAreNone) {
  Stream stream(StreamKey{});
  EXPECT_THROW((void)stream.exponential(-1), InternalError);
  EXPECT_THROW((void)stream.weibull(0, 1), InternalError);
  EXPECT_THROW((void)stream.log_uniform(seconds(2), seconds(1)), InternalError);
  EXPECT_THROW((void)stream.below(0), InternalError);
}

}  // namespace
}  // namespace stagecraft
