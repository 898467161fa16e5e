#include "sim/study/row_columns.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "base/yaml_json.hpp"
#include "sim/goodput/account.hpp"

namespace stagecraft {
namespace {

constexpr std::array kFigures{"gpus",
                              "iteration_time_s",
                              "samples_per_s",
                              "tokens_per_s",
                              "tokens_per_s_per_gpu",
                              "model_tflops_per_gpu",
                              "hardware_tflops_per_gpu",
                              "mfu",
                              "hfu",
                              "bubble.over_ideal",
                              "bubble.fraction",
                              "breakdown_s.forward",
                              "breakdown_s.backward",
                              "breakdown_s.recompute",
                              "breakdown_s.tensor_comm",
                              "breakdown_s.context_comm",
                              "breakdown_s.expert_comm",
                              "breakdown_s.pipeline_comm",
                              "breakdown_s.data_comm",
                              "breakdown_s.optimizer",
                              "breakdown_s.bubble",
                              "breakdown_s.other",
                              "memory.verdict",
                              "memory.capacity_bytes",
                              "memory.peak_bytes",
                              "memory.peak_stage"};

constexpr std::array kGoodputFigures{"goodput.policy", "goodput.samples_per_s", "goodput.fraction_of_ideal",
                                     "goodput.ettr",   "goodput.failures",      "goodput.restarts"};

// Columns added later follow all others, so that those keep their positions.
constexpr std::array kLaterFigures{"interval_90_s.0",
                                   "interval_90_s.1",
                                   "bubble.ideal_s",
                                   "bubble.makespan_s",
                                   "bubble.span_s",
                                   "provenance.measured",
                                   "provenance.published",
                                   "provenance.interpolated",
                                   "provenance.analytic",
                                   "provenance.assumed",
                                   "tasks",
                                   "simulated_ranks"};

constexpr std::array kLaterGoodputFigures{"goodput.ci95.0", "goodput.ci95.1"};

// A part of a mapping by its key, of a list by its number.
const YamlNode* part_of(const YamlNode& node, std::string_view name) {
  if (node.kind != YamlNode::Kind::kSequence) return node.find(name);
  const auto index = parse_integer(name);
  const auto size = static_cast<std::int64_t>(node.items.size());
  return index && *index >= 0 && *index < size ? &node.items[static_cast<std::size_t>(*index)] : nullptr;
}

Cell cell_of(const YamlNode* node) {
  if (node == nullptr || node->kind == YamlNode::Kind::kNull) return {};
  if (node->kind == YamlNode::Kind::kScalar) {
    const bool number = !node->quoted && node->text != "true" && node->text != "false";
    return {.kind = number ? Cell::Kind::kNumber : Cell::Kind::kText, .text = node->text};
  }
  JsonWriter json;
  write_json(json, *node);
  return {.kind = Cell::Kind::kText, .text = json.str()};
}

}  // namespace

std::string csv_quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

const YamlNode* RowDocument::at(std::string_view path) const {
  const YamlNode* node = &root;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    node = part_of(*node, path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return node;
}

std::optional<double> RowDocument::number(std::string_view path) const {
  const YamlNode* node = at(path);
  return node != nullptr && node->kind == YamlNode::Kind::kScalar ? parse_number(node->text) : std::nullopt;
}

std::string RowDocument::text(std::string_view path) const {
  const YamlNode* node = at(path);
  return node != nullptr ? node->text : std::string();
}

std::optional<RowDocument> read_row(const std::string& line, const SourceLocation& where,
                                    Diagnostics& diagnostics) {
  Diagnostics mistakes;
  std::optional<YamlNode> root = parse_json(line, where.file, mistakes);
  RowDocument row{.line = line, .sweep = {}, .root = root ? *std::move(root) : YamlNode()};
  const auto point = parse_integer(row.text("point")), points = parse_integer(row.text("points"));
  const bool is_row =
      row.text("schema") == "stagecraft.sweep/1" && point && points && *point >= 0 && *point < *points;
  if (mistakes.has_errors() || !is_row) {
    diagnostics.error({.code = "not-a-row",
                       .where = where,
                       .message = "is not a row of a sweep",
                       .hint = "rows are lines of JSON, as `stagecraft sweep --output FILE` writes them"});
    return std::nullopt;
  }
  row.sweep = row.text("sweep");
  row.point = static_cast<std::size_t>(*point);
  row.points = static_cast<std::size_t>(*points);
  return row;
}

std::vector<RowColumn> row_columns(const std::vector<std::string>& varied, bool goodput) {
  std::vector<RowColumn> columns = {{.name = "point"}};
  for (const std::string& path : varied) columns.push_back({.name = path, .kind = RowColumn::Kind::kVaried});
  columns.push_back({.name = "hash"});
  columns.push_back({.name = "feasible"});
  columns.push_back({.name = "reason", .kind = RowColumn::Kind::kReason});
  const auto add = [&](std::span<const char* const> figures) {
    for (const char* figure : figures) columns.push_back({.name = figure});
  };
  add(kFigures);
  if (goodput) {
    add(kGoodputFigures);
    for (const std::string_view bucket : kBucketNames)
      columns.push_back({.name = fmt::format("goodput.buckets_s.{}", bucket)});
  }
  add(kLaterFigures);
  if (goodput) add(kLaterGoodputFigures);
  return columns;
}

std::vector<std::string> varied_paths(const RowDocument& row) {
  std::vector<std::string> paths;
  if (const YamlNode* vary = row.at("vary"))
    for (const YamlEntry& entry : vary->entries) paths.push_back(entry.key);
  return paths;
}

Cell cell_of(const RowDocument& row, const RowColumn& column) {
  if (column.kind == RowColumn::Kind::kPath) return cell_of(row.at(column.name));
  if (column.kind == RowColumn::Kind::kVaried) {
    const YamlNode* vary = row.at("vary");
    return cell_of(vary == nullptr ? nullptr : vary->find(column.name));
  }
  const std::optional<RowReason> reason = first_reason(row);
  if (!reason) return {};
  return {.kind = Cell::Kind::kText, .text = fmt::format("{}: {}", reason->code, reason->text)};
}

std::optional<RowReason> first_reason(const RowDocument& row) {
  const YamlNode* reasons = row.at("reasons");
  if (reasons == nullptr || reasons->items.empty()) return std::nullopt;
  const YamlNode& first = reasons->items.front();
  const YamlNode* code = first.find("code");
  const YamlNode* message = first.find("message");
  const YamlNode* path = first.find("path");
  if (code == nullptr || message == nullptr) return std::nullopt;
  const bool named = path != nullptr && !path->text.empty();
  return RowReason{.code = code->text, .text = (named ? path->text + ": " : std::string()) + message->text};
}

std::string csv_header(const std::vector<RowColumn>& columns) {
  std::vector<std::string> names;
  for (const RowColumn& column : columns) names.push_back(csv_quoted(column.name));
  return join(names, ",");
}

std::string csv_line(const RowDocument& row, const std::vector<RowColumn>& columns) {
  std::vector<std::string> cells;
  for (const RowColumn& column : columns) cells.push_back(csv_quoted(cell_of(row, column).text));
  return join(cells, ",");
}

}  // namespace stagecraft
