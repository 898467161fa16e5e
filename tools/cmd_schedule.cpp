#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "sim/engine/engine.hpp"
#include "sim/lower/lower.hpp"
#include "sim/report/schedule_view.hpp"
#include "sim/schedule/schedule.hpp"
#include "tools/commands.hpp"

namespace stagecraft {
namespace {

using std::chrono_literals::operator""s;

const ScheduleKind& kind_of(const Arguments& arguments) {
  const std::optional<std::string> name = arguments.text("schedule");
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (kind.simulated()) names.emplace_back(kind.name);
  }
  if (!name) throw UsageError("--schedule is missing", "one of " + join(names, ", "));
  const ScheduleKind* kind = find_schedule(*name);
  if (kind != nullptr && !kind->simulated())
    throw UsageError(fmt::format("--schedule: '{}' cannot be drawn yet", *name), "one of " + join(names, ", "));
  if (kind != nullptr) return *kind;
  for (const std::string_view planned : planned_schedules()) {
    if (planned == *name)
      throw UsageError(fmt::format("--schedule: '{}' is not supported yet", *name),
                       "one of " + join(names, ", "));
  }
  throw UsageError(fmt::format("--schedule: '{}' is not a schedule", *name), suggest(*name, names));
}

PipelineShape shape_of(const Arguments& arguments) {
  constexpr int kMost = 1'000'000;
  return {.ranks = arguments.integer("stages", {}, 1, 65'536),
          .micro_batches = arguments.integer("micro-batches", {}, 1, kMost),
          .chunks = arguments.integer("chunks", 1, 1, 1'024),
          .group = arguments.integer("micro-batch-group", 0, 0, kMost)};
}

IterationPrices prices_of(const Arguments& arguments, const PipelineShape& shape) {
  StagePrice stage;
  stage.forward.add(Category::kForward, arguments.duration("forward", 1s), Provenance::kAssumed);
  stage.recompute.add(Category::kRecompute, arguments.duration("recompute", 0s), Provenance::kAssumed);
  stage.input_gradient.add(Category::kBackward, arguments.duration("input-gradient", 1s),
                           Provenance::kAssumed);
  stage.weight_gradient.add(Category::kBackward, arguments.duration("weight-gradient", 1s),
                            Provenance::kAssumed);
  EdgePrice edge;
  if (shape.ranks > 1) {
    edge.forward.add(Category::kPipelineComm, arguments.duration("message", 0s), Provenance::kAssumed);
    edge.backward = edge.forward;
  }
  const auto stages = static_cast<std::size_t>(shape.ranks) * static_cast<std::size_t>(shape.chunks);
  IterationPrices prices;
  prices.stages.assign(stages, stage);
  prices.edges.assign(stages - 1, edge);
  prices.ranks.resize(static_cast<std::size_t>(shape.ranks));
  return prices;
}

// The word after `schedule`.
void check_part(const std::vector<std::string>& words) {
  const std::string example = "stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 8";
  if (words.empty()) throw UsageError("`schedule` takes `show`", example);
  for (const std::string_view planned : {"check", "export", "import"}) {
    if (words[0] == planned)
      throw UsageError(fmt::format("`schedule {}` is not supported yet", words[0]), example);
  }
  if (words[0] != "show")
    throw UsageError(fmt::format("`schedule` takes `show`, not '{}'", words[0]), example);
  if (words.size() > 1)
    throw UsageError(fmt::format("`schedule show` takes options, not '{}'", words[1]), example);
}

bool blocking_messages(const Arguments& arguments) {
  const std::string way = arguments.text("p2p").value_or("overlapped");
  const std::vector<std::string> ways = {"overlapped", "blocking"};
  if (way == "batched")
    throw UsageError("--p2p: 'batched' is not supported yet", "one of " + join(ways, ", "));
  if (std::find(ways.begin(), ways.end(), way) == ways.end())
    throw UsageError(fmt::format("--p2p: '{}' is no way to send", way), suggest(way, ways));
  return way == "blocking";
}

// Of the schedules there are, none runs two passes as one.
void note_fused(const Arguments& arguments, const ScheduleKind& kind, Session& session) {
  (void)arguments.duration("fused", 0s);
  if (!arguments.has("fused") || arguments.has("quiet")) return;
  session.err << fmt::format("stagecraft: warning: --fused had no effect: {} has no fused pairs\n",
                             kind.name);
}

// A picture of a million passes helps nobody and costs gigabytes.
void check_size(const PipelineShape& shape) {
  constexpr std::int64_t kMost = 20'000'000;
  const std::int64_t passes = 2LL * shape.ranks * shape.chunks * shape.micro_batches;
  if (passes > kMost) {
    throw UsageError(fmt::format("{} passes are more than {}", with_thousands(passes), with_thousands(kMost)),
                     "fewer --stages, --chunks or --micro-batches");
  }
}

}  // namespace

int schedule_command(const Arguments& arguments, Session& session) {
  check_part(arguments.words());
  const ScheduleKind& kind = kind_of(arguments);
  const PipelineShape shape = shape_of(arguments);
  check_size(shape);
  if (const std::optional<ScheduleProblem> problem = kind.constraint(shape)) {
    throw UsageError(fmt::format("{}: {}", kind.name, problem->message), problem->hint);
  }
  const bool blocking = blocking_messages(arguments);
  const Schedule schedule = generate(kind, shape);
  const Program program = lower(schedule, prices_of(arguments, shape), {.blocking_messages = blocking});
  note_fused(arguments, kind, session);
  const Timeline timeline = run(program);
  const ScheduleView view{.schedule = schedule, .program = program, .timeline = timeline};
  if (arguments.has("json")) {
    session.out << render_schedule_json(view) << '\n';
  } else {
    session.out << render_schedule_text(view, {.width = arguments.integer("width", 120, 20, 100'000),
                                               .color = wants_color(arguments, session)});
  }
  return kDone;
}

}  // namespace stagecraft
