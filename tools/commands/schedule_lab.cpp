#include "tools/commands/schedule_lab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/text.hpp"
#include "sim/schedule/calls.hpp"
#include "tools/command_line/files.hpp"
#include "tools/command_line/option_checks.hpp"
#include "tools/command_line/scenarios.hpp"

namespace stagecraft {
namespace {

using std::chrono_literals::operator""s;

std::string exact_seconds(std::int64_t nanoseconds) {
  return fmt::format("{:.12g} s", to_seconds(Duration(nanoseconds)));
}

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) names.emplace_back(kind.name);
  return names;
}

const ScheduleKind& schedule_kind(const Arguments& arguments) {
  const std::optional<std::string> name = arguments.text("schedule");
  const std::vector<std::string> names = schedule_names();
  if (!name) throw UsageError("--schedule is missing", "one of " + join(names, ", "));
  const ScheduleKind* kind = find_schedule(*name);
  if (kind != nullptr) return *kind;
  throw UsageError(fmt::format("--schedule: '{}' is not a schedule", *name),
                   suggest(*name, names, names.size()));
}

PipelineShape pipeline_shape(const Arguments& arguments, int default_chunks) {
  constexpr int kMost = 1'000'000;
  OptionChecks checks;
  const auto number = [&](const char* option, std::optional<int> fallback, int min, int max) {
    return checks.read([&] { return arguments.integer(option, fallback, min, max); }).value_or(min);
  };
  const PipelineShape shape{.ranks = number("stages", {}, 1, 65'536),
                            .micro_batches = number("micro-batches", {}, 1, kMost),
                            .chunks = number("chunks", default_chunks, 1, 1'024),
                            .group = number("micro-batch-group", 0, 0, kMost)};
  checks.done();
  return shape;
}

void refuse_more_passes(std::int64_t most, std::int64_t passes) {
  if (passes > most)
    throw UsageError(fmt::format("{} passes are more than {}", with_thousands(passes), with_thousands(most)),
                     "fewer --stages, --chunks or --micro-batches");
}

void refuse_large(const PipelineShape& shape) {
  refuse_more_passes(20'000'000, 2LL * shape.ranks * shape.chunks * shape.micro_batches);
}

ScheduleCosts schedule_costs(const Arguments& arguments, bool recomputes) {
  // The longest order that is drawn has 2^24 passes, whose nanoseconds have to be counted.
  OptionChecks checks;
  const auto read = [&](const char* option, Duration fallback) {
    constexpr Duration kMost = 60s;
    const Duration time = arguments.duration(option, fallback);
    if (arguments.has(option) && time > kMost)
      throw UsageError(fmt::format("--{}: {} is more than {}", option, human(time), human(kMost)),
                       "what counts are the lengths of passes against each other");
    return time.count();
  };
  const auto nanoseconds = [&](const char* option, Duration fallback) {
    return checks.read([&] { return read(option, fallback); }).value_or(0);
  };
  StageCosts stage{.forward = nanoseconds("forward", 1s),
                   .input_gradient = nanoseconds("input-gradient", 1s),
                   .weight_gradient = nanoseconds("weight-gradient", 1s)};
  const std::int64_t again = nanoseconds("recompute", recomputes ? Duration(stage.forward) : 0s);
  (recomputes ? stage.recompute : stage.input_gradient) += again;
  ScheduleCosts costs{.stages = {stage}, .message = nanoseconds("message", 0s)};
  if (arguments.has("fused")) costs.pair = nanoseconds("fused", {});
  checks.done();
  return costs;
}

void check_pairs(const Schedule& schedule, const ScheduleCosts& costs) {
  if (!costs.pair) return;
  for (const std::vector<Action>& order : schedule.ranks)
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      if (!order[i].fused) continue;
      const std::int64_t first = length_of(order[i], costs), second = length_of(order[i + 1], costs);
      const std::int64_t least = std::max(first, second), most = first + second;
      if (least <= *costs.pair && *costs.pair <= most) continue;
      throw UsageError(fmt::format("--fused: a pair of passes of {} and {} does not last {}",
                                   exact_seconds(first), exact_seconds(second), exact_seconds(*costs.pair)),
                       least == most ? fmt::format("it lasts {}", exact_seconds(least))
                                     : fmt::format("it lasts {}, the longer of them, to {}, both",
                                                   exact_seconds(least), exact_seconds(most)));
    }
}

Schedule named_schedule(const Arguments& arguments) {
  OptionChecks checks;
  const auto named = checks.read([&] { return &schedule_kind(arguments); });
  const auto shape =
      checks.read([&] { return pipeline_shape(arguments, named ? default_chunks(**named) : 1); });
  const auto costs = checks.read([&] { return schedule_costs(arguments, named && (*named)->recomputes); });
  checks.done();
  const ScheduleKind& kind = **named;
  refuse_large(*shape);
  if (const std::optional<ScheduleProblem> problem = kind.constraint(*shape))
    throw UsageError(fmt::format("{}: {}", kind.name, problem->message), problem->hint);
  return generate(kind, *shape, *costs);
}

std::vector<std::string> message_ways() {
  return {"overlapped", "batched", "blocking"};
}

std::string message_way(const Arguments& arguments) {
  std::string way = arguments.text("p2p").value_or("overlapped");
  const std::vector<std::string> ways = message_ways();
  if (std::find(ways.begin(), ways.end(), way) == ways.end())
    throw UsageError(fmt::format("--p2p: '{}' is no way to send", way), suggest(way, ways));
  return way;
}

Play timed(const Schedule& drawn, const ScheduleCosts& costs, const Arguments& arguments) {
  const std::string way = message_way(arguments);
  if (way == "overlapped") return play(drawn, costs);
  const CallStyle style = way == "batched" ? CallStyle::kBatched : CallStyle::kOneByOne;
  const std::optional<ScheduleProblem> unknown = refuse_calls(drawn, style);
  if (!unknown) return play_calls(drawn, costs, calls_of(drawn, style));
  if (style == CallStyle::kOneByOne) return play_waiting_senders(drawn, costs);
  throw UsageError(fmt::format("--p2p: {}", unknown->message), unknown->hint);
}

void report_problems(const std::string& file, const std::vector<CellProblem>& problems,
                     Diagnostics& diagnostics) {
  for (const CellProblem& problem : problems) {
    diagnostics.error({.code = "bad-order",
                       .where = {.file = file, .line = problem.line, .column = problem.column},
                       .message = problem.problem.message,
                       .hint = problem.problem.hint});
  }
}

std::optional<OrderFile> read_order_file(const std::string& file, Diagnostics& diagnostics) {
  const std::optional<std::string> text = read_text_file(file, diagnostics);
  if (!text) return std::nullopt;
  auto order = parse_csv(*text);
  if (auto* whole = std::get_if<OrderFile>(&order)) return std::move(*whole);
  report_problems(file, std::get<std::vector<CellProblem>>(order), diagnostics);
  return std::nullopt;
}

int refuse_order(const Diagnostics& diagnostics, const Arguments& arguments, Session& session) {
  bool unread = false;
  for (const Diagnostic& diagnostic : diagnostics.items()) unread = unread || diagnostic.code != "bad-order";
  if (arguments.has("json")) {
    print_diagnostics(diagnostics.sorted(), arguments, session);
  } else {  // no source line: a row is mostly longer than a terminal is wide
    for (const Diagnostic& diagnostic : diagnostics.sorted()) session.err << render(diagnostic) << '\n';
  }
  return unread ? kWrongInput : kAnswerIsNo;
}

}  // namespace stagecraft
