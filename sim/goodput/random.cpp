#include "sim/goodput/random.hpp"

#include <cmath>

#include "base/check.hpp"
#include "sim/goodput/never.hpp"

namespace stagecraft {

namespace {

// Multipliers of the rounds and Weyl steps of the key: Salmon et al., SC'11, section 4.3 and Random123's
// philox.h.
constexpr std::uint64_t kMultiply0 = 0xD2511F53;
constexpr std::uint64_t kMultiply1 = 0xCD9E8D57;
constexpr std::uint32_t kStep0 = 0x9E3779B9;
constexpr std::uint32_t kStep1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = kMultiply0 * counter[0], b = kMultiply1 * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += kStep0;
    key[1] += kStep1;
  }
  return counter;
}

std::uint64_t Stream::bits() {
  const std::uint32_t draw = next_++;
  const std::uint32_t block = draw / 2;
  if (held_block_ != block + 1) {
    const auto purpose = static_cast<std::uint32_t>(key_.purpose);
    const auto words =
        philox({block, key_.repeat, key_.entity, purpose | std::uint32_t{key_.process} << 16},
               {static_cast<std::uint32_t>(key_.seed), static_cast<std::uint32_t>(key_.seed >> 32)});
    held_ = {words[0] | std::uint64_t{words[1]} << 32, words[2] | std::uint64_t{words[3]} << 32};
    held_block_ = block + 1;
  }
  return held_[draw % 2];
}

double Stream::uniform() {
  return (static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52;
}

Duration Stream::exponential(double rate_per_second) {
  SC_CHECK(rate_per_second >= 0, "a rate is not negative");
  const double unit = -std::log(uniform());
  return rate_per_second > 0 ? from_seconds_or_never(unit / rate_per_second) : kNever;
}

Duration Stream::weibull(double shape, double rate_per_second) {
  SC_CHECK(shape > 0, "a Weibull shape is positive");
  SC_CHECK(rate_per_second >= 0, "a rate is not negative");
  const double unit = std::pow(-std::log(uniform()), 1 / shape) / std::tgamma(1 + 1 / shape);
  return rate_per_second > 0 ? from_seconds_or_never(unit / rate_per_second) : kNever;
}

Duration Stream::log_uniform(Duration low, Duration high) {
  SC_CHECK(low > Duration(0) && low <= high, "a range of times is positive and in order");
  return from_seconds_or_never(to_seconds(low) * std::pow(to_seconds(high) / to_seconds(low), uniform()));
}

int Stream::below(int n) {
  SC_CHECK(n >= 1, "there is something to choose from");
  return static_cast<int>(uniform() * n);
}

}  // namespace stagecraft
