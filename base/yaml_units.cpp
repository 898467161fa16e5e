#include "base/yaml_units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "base/text.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

namespace {

// One unit in the base unit of its kind. Small units divide, for 1e-3 is no exact double and 1e3 is.
struct Unit {
  const char* name;
  double factor = 1;
  double divisor = 1;
};

constexpr std::array kTimeUnits{Unit{"ns", 1, 1e9},      Unit{"us", 1, 1e6}, Unit{"\u00b5s", 1, 1e6},
                                Unit{"\u03bcs", 1, 1e6}, Unit{"ms", 1, 1e3}, Unit{"s"},
                                Unit{"min", 60},         Unit{"h", 3600},    Unit{"days", 86400},
                                Unit{"day", 86400}};
constexpr std::array kByteUnits{
    Unit{"B"},        Unit{"kB", 1e3},     Unit{"KB", 1e3},     Unit{"MB", 1e6},     Unit{"GB", 1e9},
    Unit{"TB", 1e12}, Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40}};
constexpr std::array kBitUnits{Unit{"Mb", 1e6, 8}, Unit{"Gb", 1e9, 8}, Unit{"Tb", 1e12, 8}};
constexpr std::array kFlopUnits{Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}};

// Digits at the front of `text`, with `_` allowed between two of them: "12_000" is 6 long.
std::size_t digits_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_digit(text[at]))
      ++at;
    else if (text[at] == '_' && at > 0 && at + 1 < text.size() && is_digit(text[at + 1]))
      ++at;
    else
      break;
  }
  return at;
}

// Bytes of the decimal number at the front of `text`, 0 if there is none. A leading zero, as in 010, is none:
// YAML 1.1 reads it as eight, people as ten.
std::size_t number_length(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const std::size_t whole = digits_length(text.substr(at));
  if (whole > 1 && text[at] == '0') return 0;
  at += whole;
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = digits_length(text.substr(at + 1));
    at += 1 + fraction;
  }
  if (whole + fraction == 0) return 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const std::size_t digits = digits_length(text.substr(exponent));
    if (digits > 0) at = exponent + digits;
  }
  return at;
}

// std::from_chars knows neither `_` nor a leading plus.
std::string plain_digits(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  std::string plain(text);
  std::erase(plain, '_');
  return plain;
}

struct NumberAndUnit {
  double number = 0;
  std::string_view number_text;
  std::string_view unit;  // empty when there is none
};

std::optional<NumberAndUnit> split(std::string_view text) {
  text = trimmed(text);
  const std::size_t length = number_length(text);
  const auto number = parse_number(text.substr(0, length));
  if (!number) return std::nullopt;
  return NumberAndUnit{*number, text.substr(0, length), trimmed(text.substr(length))};
}

std::optional<double> in_base_unit(double number, std::string_view unit, std::span<const Unit> units) {
  const auto found = std::ranges::find_if(units, [&](const Unit& u) { return unit == u.name; });
  if (found == units.end()) return std::nullopt;
  return number * found->factor / found->divisor;
}

// The value of "12 GiB" in the base unit of its kind, if it is one, not negative and finite. 0 needs no unit.
std::optional<double> base_value(QuantityKind kind, std::string_view text) {
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  if (parts->unit.empty()) return parts->number == 0 ? std::optional(0.0) : std::nullopt;

  std::optional<double> value;
  std::string_view unit = parts->unit;
  switch (kind) {
    case QuantityKind::kDuration:
      value = in_base_unit(parts->number, unit, kTimeUnits);
      break;
    case QuantityKind::kBytes:
      value = in_base_unit(parts->number, unit, kByteUnits);
      break;
    case QuantityKind::kFlopRate:
      value = in_base_unit(parts->number, unit, kFlopUnits);
      break;
    case QuantityKind::kBandwidth:
      if (!unit.ends_with("/s")) return std::nullopt;
      unit = trimmed(unit.substr(0, unit.size() - 2));
      value = in_base_unit(parts->number, unit, kByteUnits);
      if (!value) value = in_base_unit(parts->number, unit, kBitUnits);
      break;
  }
  return value && *value >= 0 && std::isfinite(*value) ? value : std::nullopt;
}

struct KindWords {
  const char* noun;
  const char* units;
  const char* base_unit;
  // Times are counted to 292 years, which bytes by the terabyte have to end within: rates are zero, or this at least.
  double least = 0;
  const char* least_words = "";
};

KindWords words_of(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::kDuration:
      return {"a duration", "ns us ms s min h days", "ns"};
    case QuantityKind::kBytes:
      return {"a size in bytes", "B kB MB GB TB, and KiB MiB GiB TiB for powers of 2", "B"};
    case QuantityKind::kBandwidth:
      return {"a bandwidth", "B/s kB/s MB/s GB/s TB/s, KiB/s MiB/s GiB/s TiB/s, and Mb/s Gb/s Tb/s for bits",
              "B/s", 1e4, "10 kB/s"};
    case QuantityKind::kFlopRate:
      break;
  }
  return {"a FLOP rate", "GFLOP/s TFLOP/s PFLOP/s", "FLOP/s", 1e6, "1 MFLOP/s"};
}

std::optional<double> parse_rate(QuantityKind kind, std::string_view text) {
  const auto rate = base_value(kind, text);
  return rate && (*rate == 0 || *rate >= words_of(kind).least) ? rate : std::nullopt;
}

// What a number with no unit probably means: a large one counts the smallest unit, any other the usual one.
std::string plausible_reading(QuantityKind kind, double number, std::string_view digits) {
  constexpr double kLarge = 1e6;
  const bool large = number >= kLarge && number < kBeyondInt64;
  switch (kind) {
    case QuantityKind::kDuration:
      if (large) return fmt::format("{} ns is {}", digits, human(from_seconds(number / 1e9)));
      return fmt::format("{} ms is {:.4g} s; units are {}", digits, number / 1e3, words_of(kind).units);
    case QuantityKind::kBytes:
      if (large) return fmt::format("{} B is {}", digits, human(to_bytes(number)));
      return fmt::format("{} GiB is {:.4g} GB", digits, number * 0x1p30 / 1e9);
    case QuantityKind::kBandwidth:
      if (large)
        return fmt::format("{} B/s is {}; bandwidths are per direction", digits, human(Bandwidth(number)));
      return fmt::format("{} Gb/s is {:.4g} GB/s; bandwidths are per direction", digits, number / 8);
    case QuantityKind::kFlopRate:
      break;
  }
  if (large) return fmt::format("{} FLOP/s is {}", digits, human(FlopRate(number)));
  return fmt::format("{} TFLOP/s is {:.4g} PFLOP/s", digits, number / 1e3);
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || number_length(text) != text.size()) return std::nullopt;
  const std::string plain = plain_digits(text);
  double number = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  if (error != std::errc() || end != plain.data() + plain.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  const std::string plain = plain_digits(trimmed(text));
  std::int64_t exact = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), exact);
  if (error == std::errc() && end == plain.data() + plain.size()) return exact;
  const bool whole = std::floor(*number) == *number && *number >= -kBeyondInt64 && *number < kBeyondInt64;
  return whole ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto seconds = base_value(QuantityKind::kDuration, text);
  if (!seconds || *seconds * 1e9 >= kBeyondInt64) return std::nullopt;
  return from_seconds(*seconds);
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto bytes = base_value(QuantityKind::kBytes, text);
  if (!bytes || *bytes >= kBeyondInt64) return std::nullopt;
  return to_bytes(*bytes);
}

std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  const auto rate = parse_rate(QuantityKind::kBandwidth, text);
  return rate ? std::optional(Bandwidth(*rate)) : std::nullopt;
}

std::optional<FlopRate> parse_flop_rate(std::string_view text) {
  const auto rate = parse_rate(QuantityKind::kFlopRate, text);
  return rate ? std::optional(FlopRate(*rate)) : std::nullopt;
}

QuantityMistake explain_bad_quantity(QuantityKind kind, std::string_view text) {
  const KindWords words = words_of(kind);
  const std::string units = fmt::format("its units are {}", words.units);
  const std::string quoted = in_quotes(text);
  const auto parts = split(text);
  if (!parts) {
    return {
        .code = "bad-quantity", .message = fmt::format("{} is not {}", quoted, words.noun), .hint = units};
  }
  if (parts->unit.empty()) {
    return {.code = "no-unit",
            .message = fmt::format("{} has no unit", quoted),
            .hint = plausible_reading(kind, parts->number, parts->number_text)};
  }
  // With 1 in place of the number only the unit can be wrong.
  if (!base_value(kind, fmt::format("1 {}", parts->unit))) {
    return {.code = "unknown-unit",
            .message =
                fmt::format("{} is not {}: {} is no unit of it", quoted, words.noun, in_quotes(parts->unit)),
            .hint = units};
  }
  if (parts->number < 0) {
    return {.code = "negative-quantity", .message = fmt::format("{} is negative", quoted), .hint = {}};
  }
  if (const auto value = base_value(kind, text); value && *value < words.least) {
    return {.code = "quantity-too-small",
            .message = fmt::format("{} is too small", quoted),
            .hint = fmt::format("{} is the least that is counted with", words.least_words)};
  }
  const char* const most =
      kind == QuantityKind::kDuration ? "292 years are the most that is counted with" : "";
  return {.code = "quantity-too-large", .message = fmt::format("{} is too large", quoted), .hint = most};
}

}  // namespace stagecraft
