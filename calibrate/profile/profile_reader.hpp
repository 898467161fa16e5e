// The parts that a profile file is made of: constants with their story, and tables of rows.
//
// Works like YamlMap (base/yaml.hpp): every mistake is reported to the Diagnostics at its place, and a
// harmless value is returned so that reading continues.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/yaml.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

// Valid range of a number, with open or closed ends.
struct Range {
  double above = 0, up_to = 1;
  bool closed_below = false;  // [above, up_to] instead of (above, up_to]

  [[nodiscard]] bool holds(double value) const;  // false for NaN
  [[nodiscard]] std::string text() const;        // "(0, 1.2]"
};

// The sub-mapping `key` of `in`; reports where it is missing or no mapping, and is then an empty mapping that
// reports nothing more, so `ok` says whether to read on.
struct Section {
  YamlMap map;
  bool ok = false;
};
[[nodiscard]] Section required_section(YamlMap& in, std::string_view key, std::string_view what_it_is);

// `provenance` and `source` of a constant or a table; both required, the source not blank.
struct Story {
  Provenance provenance = Provenance::kAssumed;
  std::string source;
};
[[nodiscard]] Story read_story(YamlMap& in);

// A bare number of `in` that must lie in `range`.
double read_in_range(YamlMap& in, std::string_view key, Range range);

// Valid range of a quantity, ends included.
template <class T>
struct Within {
  T least{}, most{};

  [[nodiscard]] bool holds(T value) const { return least <= value && value <= most; }
  [[nodiscard]] std::string complaint(T value) const {
    return fmt::format("{} does not lie in [{}, {}]", human(value), human(least), human(most));
  }
};

// What `read()` gives for `key`, which must lie `within`.
template <class T, class Read>
T read_within(YamlMap& in, std::string_view key, const Within<T>& within, Read read) {
  const ErrorWatch watch(in.diagnostics());
  const T value = read();
  if (watch.clean() && !within.holds(value)) in.error(key, "out-of-range", within.complaint(value));
  return value;
}

// No kernel, launch or message waits longer.
inline constexpr Duration kLongestPart = std::chrono::seconds(1);

// `key: {value, provenance, source}`; quantities from 0 to `most`.
[[nodiscard]] Sourced<double> read_number(YamlMap& in, std::string_view key, Range range);
[[nodiscard]] std::optional<Sourced<double>> read_optional_number(YamlMap& in, std::string_view key,
                                                                  Range range);
[[nodiscard]] Sourced<Duration> read_duration(YamlMap& in, std::string_view key,
                                              Duration most = kLongestPart);
[[nodiscard]] Sourced<Bytes> read_bytes(YamlMap& in, std::string_view key, Bytes most);

// Dimensions and group sizes; the product of two still fits into int64.
inline constexpr std::int64_t kLargestInteger = 2'147'483'647;

// One row of a table, read cell by cell.
class TableRow {
 public:
  TableRow(const YamlNode& node, std::string path, std::span<const std::string> columns,
           Diagnostics& diagnostics)
      : node_(&node), path_(std::move(path)), columns_(columns), diagnostics_(&diagnostics) {}

  std::int64_t integer(std::size_t column, std::int64_t at_least = 1, std::int64_t at_most = kLargestInteger);
  double number(std::size_t column, Range range);
  Duration duration(std::size_t column, Duration most);
  Bytes bytes(std::size_t column);
  Bandwidth bandwidth(std::size_t column);  // of messages: from 1 MB/s to 1 PB/s
  std::size_t choice(std::size_t column, std::span<const std::string_view> names);

  void error(std::size_t column, std::string code, std::string message, std::string hint = {});
  void error(std::string code, std::string message, std::string hint = {});  // error of the whole row

 private:
  [[nodiscard]] const std::string& text(std::size_t column) const { return node_->items[column].text; }

  const YamlNode* node_;
  std::string path_;
  std::span<const std::string> columns_;
  Diagnostics* diagnostics_;
};

// Reads the keys `columns` and `rows` of a table. Columns must have exactly these names in this order (they
// make the file readable on its own), and there must be rows. Rows of a wrong length, or that are no lists of
// scalars, are reported and left out.
[[nodiscard]] std::vector<TableRow> read_rows(YamlMap& table, std::span<const std::string> columns);

}  // namespace stagecraft
