#include "calibrate/profile/profile_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {

namespace {

// Gigabit Ethernet among many is above the one, and no fabric near the other.
constexpr Within<Bandwidth> kBusBandwidth{.least = Bandwidth(1e6), .most = Bandwidth(1e15)};

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Reads `key: {value, provenance, source}`, the value with `read(map, "value")`.
template <class T, class Read>
Sourced<T> read_sourced(YamlMap& in, std::string_view key, Read read) {
  Section section = required_section(in, key, "a constant is a mapping {value, provenance, source}");
  if (!section.ok) return {};
  Sourced<T> constant;
  constant.value = read(section.map);
  Story story = read_story(section.map);
  section.map.finish();
  constant.provenance = story.provenance;
  constant.source = std::move(story.source);
  return constant;
}

}  // namespace

bool Range::holds(double value) const {
  return (closed_below ? value >= above : value > above) && value <= up_to;
}

std::string Range::text() const {
  return fmt::format("{}{:g}, {:g}]", closed_below ? '[' : '(', above, up_to);
}

Section required_section(YamlMap& in, std::string_view key, std::string_view what_it_is) {
  const YamlNode* node = in.get(key);
  if (node == nullptr) {
    in.error(key, "missing-key", "is required, but not given", std::string(what_it_is));
  } else if (node->kind != YamlNode::Kind::kMap) {
    in.error(key, "not-a-mapping", "expected a mapping", std::string(what_it_is));
  } else {
    return {.map = in.map(key), .ok = true};
  }
  return {.map = YamlMap(nullptr, in.path_of(key), in.where_of(key), in.diagnostics()), .ok = false};
}

Story read_story(YamlMap& in) {
  const auto provenance = in.choose<Provenance>("provenance", kProvenanceNames);
  const ErrorWatch watch(in.diagnostics());
  std::string source = in.text("source");
  if (watch.clean() && blank(source)) {
    in.error("source", "empty-source", "says nothing", "a citation, or how it was fitted and on what");
  }
  return {.provenance = provenance, .source = std::move(source)};
}

double read_in_range(YamlMap& in, std::string_view key, Range range) {
  const ErrorWatch watch(in.diagnostics());
  const double value = in.number(key);
  if (!watch.clean()) return value;
  if (!range.holds(value))
    in.error(key, "out-of-range", fmt::format("{:g} does not lie in {}", value, range.text()));
  return value;
}

Sourced<double> read_number(YamlMap& in, std::string_view key, Range range) {
  return read_sourced<double>(in, key, [&](YamlMap& map) { return read_in_range(map, "value", range); });
}

std::optional<Sourced<double>> read_optional_number(YamlMap& in, std::string_view key, Range range) {
  return in.has(key) ? std::optional(read_number(in, key, range)) : std::nullopt;
}

Sourced<Duration> read_duration(YamlMap& in, std::string_view key, Duration most) {
  return read_sourced<Duration>(in, key, [&](YamlMap& map) {
    return read_within(map, "value", Within<Duration>{.most = most}, [&] { return map.duration("value"); });
  });
}

Sourced<Bytes> read_bytes(YamlMap& in, std::string_view key, Bytes most) {
  return read_sourced<Bytes>(in, key, [&](YamlMap& map) {
    return read_within(map, "value", Within<Bytes>{.most = most}, [&] { return map.bytes("value"); });
  });
}

void TableRow::error(std::size_t column, std::string code, std::string message, std::string hint) {
  diagnostics_->error({.code = std::move(code),
                       .where = node_->items[column].where,
                       .path = fmt::format("{}.{}", path_, columns_[column]),
                       .message = std::move(message),
                       .hint = std::move(hint)});
}

void TableRow::error(std::string code, std::string message, std::string hint) {
  diagnostics_->error({.code = std::move(code),
                       .where = node_->where,
                       .path = path_,
                       .message = std::move(message),
                       .hint = std::move(hint)});
}

std::int64_t TableRow::integer(std::size_t column, std::int64_t at_least, std::int64_t at_most) {
  const std::optional<std::int64_t> value = parse_integer(text(column));
  if (!value) {
    error(column, "bad-number", fmt::format("'{}' is not a whole number", text(column)));
    return at_least;
  }
  if (*value < at_least || *value > at_most) {
    error(column, "out-of-range", fmt::format("{} does not lie in [{}, {}]", *value, at_least, at_most));
    return at_least;
  }
  return *value;
}

double TableRow::number(std::size_t column, Range range) {
  const std::optional<double> value = parse_number(text(column));
  if (!value) {
    error(column, "bad-number", fmt::format("'{}' is not a number", text(column)));
  } else if (!range.holds(*value)) {
    error(column, "out-of-range", fmt::format("{:g} does not lie in {}", *value, range.text()));
  } else {
    return *value;
  }
  return range.up_to;
}

Duration TableRow::duration(std::size_t column, Duration most) {
  const std::optional<Duration> value = parse_duration(text(column));
  const Within<Duration> within{.most = most};
  if (!value)
    error(column, "no-unit", fmt::format("'{}' is no duration", text(column)), "for instance 23.2 us");
  else if (!within.holds(*value))
    error(column, "out-of-range", within.complaint(*value));
  return value.value_or(Duration{});
}

Bytes TableRow::bytes(std::size_t column) {
  const std::optional<Bytes> value = parse_bytes(text(column));
  if (!value) error(column, "no-unit", fmt::format("'{}' is no size", text(column)), "for instance 64 KiB");
  return value.value_or(Bytes{});
}

Bandwidth TableRow::bandwidth(std::size_t column) {
  const std::optional<Bandwidth> value = parse_bandwidth(text(column));
  if (!value) {
    error(column, "no-unit", fmt::format("'{}' is no bandwidth", text(column)), "for instance 230 GB/s");
  } else if (!kBusBandwidth.holds(*value)) {
    error(column, "out-of-range", kBusBandwidth.complaint(*value));
  }
  return value.value_or(Bandwidth(1));
}

std::size_t TableRow::choice(std::size_t column, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text(column));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  error(column, "unknown-name", fmt::format("unknown {} '{}'", columns_[column], text(column)),
        suggest(text(column), to_strings(names)));
  return 0;
}

std::vector<TableRow> read_rows(YamlMap& table, std::span<const std::string> columns) {
  const std::vector<std::string> named = table.texts("columns");
  if (!table.has("columns")) {
    table.error("columns", "missing-key", "is required, but not given",
                fmt::format("[{}]", join(columns, ", ")));
  } else if (!std::ranges::equal(named, columns)) {
    table.error("columns", "wrong-columns",
                fmt::format("[{}] are not the columns of this table", join(named, ", ")),
                fmt::format("[{}]", join(columns, ", ")));
  }
  const YamlNode* rows = table.get("rows");
  if (rows == nullptr || rows->kind != YamlNode::Kind::kSequence || rows->items.empty()) {
    table.error("rows", "empty-table", "a table needs rows");
    return {};
  }
  std::vector<TableRow> result;
  for (std::size_t i = 0; i < rows->items.size(); ++i) {
    const YamlNode& node = rows->items[i];
    TableRow row(node, fmt::format("{}[{}]", table.path_of("rows"), i), columns, table.diagnostics());
    const auto is_scalar = [](const YamlNode& cell) { return cell.kind == YamlNode::Kind::kScalar; };
    if (node.kind != YamlNode::Kind::kSequence || !std::ranges::all_of(node.items, is_scalar)) {
      row.error("wrong-kind", "a row is a list of values");
    } else if (node.items.size() != columns.size()) {
      row.error("wrong-length", fmt::format("{} values for {} columns", node.items.size(), columns.size()));
    } else {
      result.push_back(std::move(row));
    }
  }
  return result;
}

}  // namespace stagecraft
