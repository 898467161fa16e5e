#include "sim/scenario/yaml_emitter.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>

#include "base/yaml.hpp"

namespace stagecraft {

namespace {

// The first form, from the readable to the exact, that reads back to the same bits.
template <class T, class Parse>
std::string exact(T value, double base, std::span<const std::pair<double, const char*>> units, Parse parse) {
  for (const auto& [factor, unit] : units) {
    const double scaled = base / factor;
    if (scaled < 1 && base != 0) continue;
    std::string text = fmt::format("{} {}", scaled, unit);
    if (parse(text) == std::optional(value)) return text;
  }
  return {};
}

// Whole numbers of a unit that divides them.
std::string whole(std::int64_t value, std::span<const std::pair<std::int64_t, const char*>> units) {
  for (const auto& [factor, unit] : units)
    if (value % factor == 0) return fmt::format("{} {}", value / factor, unit);
  return {};
}

}  // namespace

std::string quantity(Bandwidth value) {
  static constexpr std::array<std::pair<double, const char*>, 3> kUnits{
      {{1e9, "GB/s"}, {1e6, "MB/s"}, {1, "B/s"}}};
  return exact(value, value.count(), kUnits, parse_bandwidth);
}

std::string quantity(Bytes value) {
  static constexpr std::array<std::pair<std::int64_t, const char*>, 7> kUnits{{{1'000'000'000'000, "TB"},
                                                                               {std::int64_t{1} << 30, "GiB"},
                                                                               {1'000'000'000, "GB"},
                                                                               {1 << 20, "MiB"},
                                                                               {1 << 10, "KiB"},
                                                                               {1'000'000, "MB"},
                                                                               {1, "B"}}};
  return whole(value.count(), kUnits);
}

std::string quantity(Duration value) {
  static constexpr std::array<std::pair<std::int64_t, const char*>, 4> kUnits{
      {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}}};
  return whole(value.count(), kUnits);
}

}  // namespace stagecraft
