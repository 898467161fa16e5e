#include "sim/scenario/load_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "sim/schedule/csv.hpp"

namespace stagecraft {
namespace {

// Why an order that is valid cannot be simulated; empty when it can.
std::string why_only_drawn(const Schedule& schedule) {
  if (schedule.placement != Placement::kLoop)
    return "stages that are not on a loop (stage s on rank s mod p)";
  const auto any = [&](auto is_so) {
    return std::ranges::any_of(schedule.ranks,
                               [&](const auto& rank) { return std::ranges::any_of(rank, is_so); });
  };
  if (any([](const Action& action) { return action.fused; })) return "fused pairs";
  if (any([](const Action& action) { return action.pass == Pass::kRecompute; })) return "recompute passes";
  return {};
}

// The words of a cell say where it stands, so no column is given: it would count cells, not characters.
void report(const std::string& file, const std::vector<CellProblem>& problems, Diagnostics& diagnostics) {
  for (const CellProblem& problem : problems)
    diagnostics.error({.code = "bad-order",
                       .where = {.file = file, .line = problem.line},
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
  const std::size_t before = map.diagnostics().error_count();
  const std::string name = map.text("file");
  if (map.diagnostics().error_count() != before) return std::nullopt;
  const std::filesystem::path path = places.folder / name;
  std::error_code ignored;  // whatever it is, there is no file to read
  std::ifstream stream;
  if (std::filesystem::is_regular_file(path, ignored)) stream.open(path, std::ios::binary);
  if (!stream.is_open()) {
    map.error("file", "no-such-file", fmt::format("{} is not a file", in_quotes(name)),
              "a path is relative to the scenario; `stagecraft schedule export` writes such files");
    return std::nullopt;
  }
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  auto order = parse_csv(text);
  if (const auto* problems = std::get_if<std::vector<CellProblem>>(&order)) {
    report(path.string(), *problems, map.diagnostics());
    return std::nullopt;
  }
  Schedule schedule = std::move(std::get<OrderFile>(order).schedule);
  if (const std::string why = why_only_drawn(schedule); !why.empty()) {
    map.error("file", "not-supported",
              fmt::format("the order has {}, which are drawn but not simulated", why),
              "`stagecraft schedule import` draws it");
    return std::nullopt;
  }
  return PipelineOrder{.file = name, .schedule = std::move(schedule)};
}

}  // namespace stagecraft
