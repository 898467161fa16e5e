#include "sim/scenario/load_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "sim/schedule/csv.hpp"

namespace stagecraft {
namespace {

void report(const std::string& file, const std::vector<CellProblem>& problems, Diagnostics& diagnostics) {
  for (const CellProblem& problem : problems)
    diagnostics.error({.code = "bad-order",
                       .where = {.file = file, .line = problem.line, .column = problem.column},
                       .path = "schedule.file",
                       .message = problem.problem.message,
                       .hint = problem.problem.hint});
}

}  // namespace

std::optional<PipelineOrder> load_order(YamlMap& root, const PresetPlaces& places) {
  const YamlNode* node = root.get("schedule");
  if (node == nullptr || node->kind != YamlNode::Kind::kMap || node->find("file") == nullptr)
    return std::nullopt;
  YamlMap map = root.map("schedule");
  const ErrorWatch watch(map.diagnostics());
  const std::string name = map.text("file");
  if (!watch.clean()) return std::nullopt;
  const std::filesystem::path path = places.folder / name;
  std::error_code ignored;  // whatever it is, there is no file to read
  if (!std::filesystem::is_regular_file(path, ignored)) {
    map.error("file", "no-such-file", fmt::format("{} is not a file", in_quotes(name)),
              "a path is relative to the scenario; `stagecraft schedule export` writes such files");
    return std::nullopt;
  }
  const std::string* text = places.library.text(path, map.diagnostics());
  if (text == nullptr) return std::nullopt;
  auto order = parse_csv(*text);
  if (const auto* problems = std::get_if<std::vector<CellProblem>>(&order)) {
    report(path.string(), *problems, map.diagnostics());
    return std::nullopt;
  }
  Schedule schedule = std::move(std::get<OrderFile>(order).schedule);
  return PipelineOrder{
      .file = name, .schedule = std::move(schedule), .hash = StableHash().add(std::string_view(*text)).hex()};
}

}  // namespace stagecraft
