#include <fmt/format.h>

#include <functional>
#include <limits>
#include <utility>

#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "calibrate/fit/nccl_tests_reader.hpp"

namespace stagecraft {

namespace {

constexpr const char* kCode = "bad-nccl-tests";
constexpr int kMaxInt = std::numeric_limits<int>::max();

// The mappings of a list, one after the other.
void for_each(YamlMap& map, std::string_view key, const std::function<void(YamlMap&)>& read) {
  const YamlNode* list = map.get(key);
  if (list == nullptr || list->kind != YamlNode::Kind::kSequence)
    return map.error(key, kCode, "a list is required, as nccl-tests -J writes it");
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& node = list->items[i];
    YamlMap item(&node, fmt::format("{}[{}]", map.path_of(key), i), node.where, map.diagnostics());
    read(item);
  }
}

void read_program(YamlMap& file, NcclRun& run) {
  const std::vector<std::string> words = file.texts("args");
  if (words.empty()) return file.error("args", kCode, "does not name the program that ran");
  run.program = words[0];
  run.kind = nccl_collective(words[0]);
}

void read_devices(YamlMap& file, NcclRun& run) {
  detail::NcclRanks ranks;
  YamlMap config = file.map("config");
  const ErrorWatch watch(file.diagnostics());
  for_each(config, "devices", [&](YamlMap& device) {
    const std::int64_t rank = device.integer("rank", {.min = 0, .max = kMaxInt});
    const std::int64_t group = device.integer("group");
    if (!ranks.add(std::to_string(group), rank, device.text("hostname")))
      device.error("rank", kCode, fmt::format("rank {} of group {} is listed again", rank, group));
    run.device = device.text("device_info");
  });
  if (!watch.clean()) return;
  if (const auto mistake = ranks.close(run)) config.error("devices", kCode, *mistake);
}

// One half of a result; nullopt where it was not measured or is unusable.
std::optional<double> read_half(YamlMap& result, const char* side, std::int64_t size) {
  const YamlNode* node = result.get(side);
  if (node == nullptr || node->kind == YamlNode::Kind::kNull) return std::nullopt;
  YamlMap half = result.map(side);
  if (half.has("cpu_time")) {
    half.error("cpu_time", kCode, "these are host times (-C 1), which are no time of a collective");
    return std::nullopt;
  }
  const YamlNode* wrong = half.get("nwrong");  // null: nothing was checked
  if (wrong == nullptr || wrong->kind != YamlNode::Kind::kNull) {
    if (half.number("nwrong", {.min = 0}) > 0)
      half.error("nwrong", kCode, fmt::format("size {} has wrong results: such a time says nothing", size));
  }
  const YamlNode* time = half.get("time");  // "nan" stands in quotes
  const std::optional<double> us = time != nullptr ? parse_number(time->text) : std::nullopt;
  if (us && !time->quoted && detail::is_nccl_time(*us)) return *us * 1e-6;
  half.error("time", kCode,
             time == nullptr ? fmt::format("size {} has no time", size)
                             : fmt::format("{} is no time of size {}", in_quotes(time->text), size));
  return std::nullopt;
}

void read_result(YamlMap& result, NcclRun& run) {
  const std::int64_t bytes = result.integer("size", {.min = 0, .max = detail::kMaxNcclBytes});
  const std::optional<double> seconds = read_half(result, "out_of_place", bytes);
  static_cast<void>(read_half(result, "in_place", bytes));  // for its mistakes
  if (seconds) detail::add_nccl_row(run, {.bytes = static_cast<double>(bytes), .seconds = *seconds});
}

// Mistakes that the program itself reported. Its true and false are quoted strings.
void read_verdict(YamlMap& file) {
  if (file.has("out_of_bounds")) {
    YamlMap bounds = file.map("out_of_bounds");
    if (bounds.text("okay", "") != "true" || bounds.integer("count", {.min = 0, .fallback = 0}) > 0)
      bounds.error("okay", kCode, "results are out of bounds: such times say nothing");
  }
  for (const std::string& error : file.texts("errors"))
    if (!error.empty())
      file.error("errors", kCode, fmt::format("{}: such times say nothing", in_quotes(error)));
}

NcclRun read_file(YamlMap& file) {
  NcclRun run;
  read_program(file, run);
  run.nccl_version = detail::nccl_version_text(file.integer("nccl_version", {.min = 0, .max = kMaxInt}));
  read_devices(file, run);
  const ErrorWatch watch(file.diagnostics());
  for_each(file, "results", [&](YamlMap& result) { read_result(result, run); });
  if (run.rows.empty() && watch.clean()) file.error("results", kCode, "holds no time of a message");
  read_verdict(file);
  if (!file.has("end_time")) {
    file.warning("", "run-without-end", "the run has no end: its rows are used as far as they go");
  }
  return run;
}

}  // namespace

std::optional<NcclRun> detail::read_nccl_json(std::string_view text, const std::string& name,
                                              Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  const std::optional<YamlNode> root = parse_json(text, name, diagnostics);
  if (!root) return std::nullopt;
  YamlMap file(&*root, "", root->where, diagnostics);
  NcclRun run = read_file(file);
  if (!watch.clean()) return std::nullopt;
  return run;
}

}  // namespace stagecraft
