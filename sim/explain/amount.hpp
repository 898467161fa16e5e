// A figure with its unit, and the arithmetic that formulas of figures need.
//
//   Times are whole nanoseconds, bytes and counts whole numbers: sums and products with counts are exact.
//   A time that comes out of a division or a product with a real number is rounded once, as everywhere.
//   throws  InternalError where units do not go together: a formula of ours is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/units.hpp"

namespace stagecraft {

enum class Unit : std::uint8_t {
  kCount,    // whole
  kNumber,   // shares, ratios, factors
  kSeconds,  // whole nanoseconds
  kBytes,    // whole
  kFlops,
  kFlopRate,   // FLOP/s
  kByteRate,   // bytes/s
  kPerSecond,  // samples or tokens a second
  kTeraFlopRate,
  kTera,  // conversion from FLOP/s to TFLOP/s
};
// A unit's name in JSON: "1", "1", "s", "bytes", "FLOP", "FLOP/s", "bytes/s", "1/s", "TFLOP/s", "TFLOP/FLOP".
[[nodiscard]] std::string_view name(Unit unit);

class Amount {
 public:
  Amount() = default;
  [[nodiscard]] static Amount count(std::int64_t value) { return {Unit::kCount, value, 0}; }
  [[nodiscard]] static Amount number(double value) { return {Unit::kNumber, 0, value}; }
  [[nodiscard]] static Amount per_second(double value) { return {Unit::kPerSecond, 0, value}; }
  [[nodiscard]] static Amount tera_flop_rate(double value) { return {Unit::kTeraFlopRate, 0, value}; }
  [[nodiscard]] static Amount tera() { return {Unit::kTera, 0, 1e-12}; }
  // The type says the unit.
  Amount(Duration time) : Amount(Unit::kSeconds, time.count(), 0) {}
  Amount(Bytes bytes) : Amount(Unit::kBytes, bytes.count(), 0) {}
  Amount(Flops flops) : Amount(Unit::kFlops, 0, flops.count()) {}
  Amount(FlopRate rate) : Amount(Unit::kFlopRate, 0, rate.count()) {}
  Amount(Bandwidth rate) : Amount(Unit::kByteRate, 0, rate.count()) {}

  [[nodiscard]] Unit unit() const { return unit_; }
  // The number that JSON has, in seconds, bytes, FLOP, ...
  [[nodiscard]] double value() const;
  [[nodiscard]] Duration time() const;  // throws InternalError when it is none

  friend bool operator==(const Amount&, const Amount&) = default;

  friend Amount operator+(const Amount& a, const Amount& b);
  friend Amount operator-(const Amount& a, const Amount& b);
  friend Amount operator*(const Amount& a, const Amount& b);
  friend Amount operator/(const Amount& a, const Amount& b);
  friend Amount larger(const Amount& a, const Amount& b);

 private:
  Amount(Unit unit, std::int64_t whole, double real) : unit_(unit), whole_(whole), real_(real) {}
  [[nodiscard]] bool is_whole() const;

  Unit unit_ = Unit::kNumber;
  std::int64_t whole_ = 0;  // value in whole units
  double real_ = 0;         // value in other units
};

void write(JsonWriter& json, const Amount& amount);
[[nodiscard]] std::string human(const Amount& amount);  // "19.2 s", "36.5 GiB", "0.5527"

}  // namespace stagecraft
