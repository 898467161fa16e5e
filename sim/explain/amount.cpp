#include "sim/explain/amount.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "base/check.hpp"
#include "base/text.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 10> kUnitNames = {"1",      "1",       "s",   "bytes",   "FLOP",
                                                         "FLOP/s", "bytes/s", "1/s", "TFLOP/s", "TFLOP/FLOP"};

bool is(const Amount& amount, Unit unit) {
  return amount.unit() == unit;
}

bool bare(const Amount& amount) {
  return is(amount, Unit::kCount) || is(amount, Unit::kNumber);
}

}  // namespace

std::string_view name(Unit unit) {
  return kUnitNames[static_cast<std::size_t>(unit)];
}

bool Amount::is_whole() const {
  return unit_ == Unit::kCount || unit_ == Unit::kSeconds || unit_ == Unit::kBytes;
}

double Amount::value() const {
  if (unit_ == Unit::kSeconds) return to_seconds(Duration(whole_));
  return is_whole() ? static_cast<double>(whole_) : real_;
}

Duration Amount::time() const {
  SC_CHECK(unit_ == Unit::kSeconds, "a time is asked for");
  return Duration(whole_);
}

Amount operator+(const Amount& a, const Amount& b) {
  SC_CHECK(a.unit_ == b.unit_, "a sum is of one unit");
  return {a.unit_, a.whole_ + b.whole_, a.real_ + b.real_};
}

Amount operator-(const Amount& a, const Amount& b) {
  SC_CHECK(a.unit_ == b.unit_, "a difference is of one unit");
  return {a.unit_, a.whole_ - b.whole_, a.real_ - b.real_};
}

Amount operator*(const Amount& a, const Amount& b) {
  if (is(a, Unit::kFlopRate) && is(b, Unit::kTera)) return Amount::tera_flop_rate(a.real_ * b.real_);
  SC_CHECK(bare(a) || bare(b), "one factor of two is a bare number");
  if (!bare(a)) return b * a;
  if (is(a, Unit::kCount) && b.is_whole()) return {b.unit_, a.whole_ * b.whole_, 0};
  const double product = a.value() * b.value();
  if (is(b, Unit::kSeconds)) return from_seconds(product);
  SC_CHECK(!is(b, Unit::kBytes), "bytes are multiplied by counts");
  return {is(b, Unit::kCount) ? Unit::kNumber : b.unit_, 0, product};
}

Amount operator/(const Amount& a, const Amount& b) {
  if (is(a, Unit::kSeconds) && is(b, Unit::kSeconds))
    return Amount::number(static_cast<double>(a.whole_) / static_cast<double>(b.whole_));
  const double quotient = a.value() / b.value();
  if (is(b, Unit::kSeconds)) {
    if (is(a, Unit::kFlops)) return FlopRate(quotient);
    if (is(a, Unit::kBytes)) return Bandwidth(quotient);
    SC_CHECK(bare(a), "what is there so often in a time");
    return Amount::per_second(quotient);
  }
  if (is(a, Unit::kFlops) && is(b, Unit::kFlopRate)) return from_seconds(quotient);
  if (is(a, Unit::kBytes) && is(b, Unit::kByteRate)) return from_seconds(quotient);
  if (a.unit_ == b.unit_ || (bare(a) && bare(b))) return Amount::number(quotient);
  SC_CHECK(bare(b), "a divisor of another unit is a bare number");
  if (is(a, Unit::kSeconds)) return from_seconds(quotient);
  SC_CHECK(!a.is_whole(), "whole amounts are divided by their own kind");
  return {a.unit_, 0, quotient};
}

Amount larger(const Amount& a, const Amount& b) {
  SC_CHECK(a.unit_ == b.unit_, "of one unit");
  return a.whole_ < b.whole_ || a.real_ < b.real_ ? b : a;
}

void write(JsonWriter& json, const Amount& amount) {
  const bool whole = amount.unit() == Unit::kCount || amount.unit() == Unit::kBytes;
  whole ? json.value(static_cast<std::int64_t>(amount.value())) : json.value(amount.value());
}

std::string human(const Amount& amount) {
  switch (amount.unit()) {
    case Unit::kCount:
      return with_thousands(static_cast<std::int64_t>(amount.value()));
    case Unit::kSeconds: {
      const Duration time = amount.time();
      return (time < Duration::zero() ? "-" : "") + human(std::chrono::abs(time));
    }
    case Unit::kBytes:
      return human(Bytes(static_cast<std::int64_t>(amount.value())));
    case Unit::kFlops:
      return human(Flops(amount.value()));
    case Unit::kFlopRate:
      return human(FlopRate(amount.value()));
    case Unit::kByteRate:
      return human(Bandwidth(amount.value()));
    case Unit::kPerSecond:
      return four_digits(amount.value()) + "/s";
    case Unit::kTeraFlopRate:
      return fmt::format("{:.4g} TFLOP/s", amount.value());
    case Unit::kTera:
    case Unit::kNumber:
      break;
  }
  return fmt::format("{:.4g}", amount.value());
}

}  // namespace stagecraft
