// `schedule check`, `export` and `import`: orders in PyTorch's form, in and out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/report/schedule_view.hpp"
#include "sim/schedule/notation.hpp"
#include "tools/commands/schedule_lab.hpp"

namespace stagecraft {
namespace {

// What a file is held against, and what it is timed with (--json).
constexpr std::string_view kOfCheck[] = {"memory-limit", "forward", "input-gradient", "weight-gradient",
                                         "recompute",    "message", "fused",          "p2p"};
constexpr std::span kOfImport = std::span(kOfCheck).subspan(1);
// Costs, too: some orders are made to measure.
constexpr std::string_view kOfExport[] = {"schedule",          "stages",  "micro-batches",  "chunks",
                                          "micro-batch-group", "forward", "input-gradient", "weight-gradient",
                                          "recompute",         "fused",   "message",        "format"};
constexpr const char* kHint = "see stagecraft schedule --help";

const std::string& one_file(const Words& words, const std::string& part) {
  const std::string example = fmt::format("stagecraft schedule {} schedule.csv", part);
  if (words.empty()) throw UsageError(fmt::format("`schedule {}` takes a file", part), example);
  if (words.size() > 1)
    throw UsageError(fmt::format("`schedule {}` takes one file, not '{}' as well", part, words[1]), example);
  return words[0];
}

// The schedule of ours that gives the same order, if one does; nothing that is made to measure is tried.
std::string known_as(const Schedule& schedule) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    const int groups = kind.grouped ? schedule.shape.micro_batches : 0;
    if (!kind.flush || kind.placement != schedule.placement) continue;
    for (int group = 0; group <= groups; ++group) {
      PipelineShape shape = schedule.shape;
      shape.group = group;
      if (kind.constraint(shape)) continue;
      if (generate(kind, shape).ranks != schedule.ranks) continue;
      return std::string(kind.name) + (group > 0 ? fmt::format(" in groups of {}", group) : "");
    }
  }
  return {};
}

std::string sizes_of(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  return join(std::array{counted(shape.ranks, "rank"), counted(schedule.stages(), "stage"),
                         counted(shape.micro_batches, "micro-batch")},
              ", ");
}

void print_json(const Schedule& schedule, const Arguments& arguments, Session& session) {
  const ScheduleCosts costs = schedule_costs(arguments, false);
  check_pairs(schedule, costs);
  const Play times = timed(schedule, costs, arguments);
  session.out << render_schedule_json({.schedule = schedule, .drawn = schedule, .play = times, .period = 0})
              << '\n';
}

// The cells of an exported order.
std::string export_json(const Schedule& schedule, std::string_view form, std::string_view csv) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.schedule-export/1");
  json.field("name", schedule.name).field("stages", schedule.shape.ranks);
  json.field("micro_batches", schedule.shape.micro_batches).field("chunks", schedule.shape.chunks);
  json.field("format", form).key("ranks").begin_array();
  while (!csv.empty()) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    json.value(split(csv.substr(0, end), ','));
    csv.remove_prefix(std::min(end + 1, csv.size()));
  }
  return json.end_array().end_object().str();
}

}  // namespace

int schedule_check(const Words& words, const Arguments& arguments, Session& session) {
  const std::string& name = one_file(words, "check");
  refuse_without_effect(arguments, "check", kOfCheck, kHint);
  Diagnostics diagnostics;
  const std::optional<OrderFile> file = read_order_file(name, diagnostics);
  if (!file) return refuse_order(diagnostics, arguments, session);
  const int limit = arguments.integer("memory-limit", 0, 1, 1'000'000'000);
  if (limit > 0) report_problems(name, over_limit(*file, limit), diagnostics);
  if (diagnostics.has_errors()) return refuse_order(diagnostics, arguments, session);
  if (arguments.has("json")) {
    print_json(file->schedule, arguments, session);
    return kDone;
  }
  const std::vector<int> peaks = peak_in_flight(file->schedule);
  const auto worst = std::ranges::max_element(peaks);
  const std::string same = known_as(file->schedule);
  session.out << fmt::format("{}: valid: {}; rank {} holds most, {}{}\n", name, sizes_of(file->schedule),
                             worst - peaks.begin(), counted(*worst, "chunk activation"),
                             same.empty() ? "" : "; the order of " + same);
  return kDone;
}

int schedule_import(const Words& words, const Arguments& arguments, Session& session) {
  const std::string& name = one_file(words, "import");
  refuse_without_effect(arguments, "import", kOfImport, kHint);
  Diagnostics diagnostics;
  const std::optional<OrderFile> file = read_order_file(name, diagnostics);
  if (!file) return refuse_order(diagnostics, arguments, session);
  if (arguments.has("json")) {
    print_json(file->schedule, arguments, session);
    return kDone;
  }
  const std::string same = known_as(file->schedule);
  session.out << fmt::format("# {}{}\n", sizes_of(file->schedule),
                             same.empty() ? "" : ", the order of " + same);
  session.out << "# for people: check, show and `schedule: {file: …}` read the CSV itself\n";
  for (std::size_t rank = 0; rank < file->schedule.ranks.size(); ++rank)
    session.out << fmt::format("{}: {}\n", rank, print_actions(file->schedule.ranks[rank]));
  return kDone;
}

int schedule_export(const Words& words, const Arguments& arguments, Session& session) {
  if (!words.empty())
    throw UsageError(
        fmt::format("`schedule export` takes options, not '{}'", words[0]),
        "stagecraft schedule export --schedule 1f1b --stages 4 --micro-batches 8 > schedule.csv");
  refuse_without_effect(arguments, "export", kOfExport, kHint);
  const Schedule schedule = named_schedule(arguments);
  const std::string form = arguments.text("format").value_or("csv");
  const auto text =
      print_csv(schedule, form == "csv-calls" ? CsvForm::kComputeAndCommunication : CsvForm::kComputeOnly);
  if (const auto* problem = std::get_if<ScheduleProblem>(&text))
    throw UsageError(problem->message, problem->hint);
  const std::string& csv = std::get<std::string>(text);
  session.out << (arguments.has("json") ? export_json(schedule, form, csv) + "\n" : csv);
  return kDone;
}

}  // namespace stagecraft
