#include <fmt/format.h>

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
  for (const ScheduleKind& kind : schedule_kinds()) names.emplace_back(kind.name);
  if (!name) throw UsageError("--schedule is missing", "one of " + join(names, ", "));
  const ScheduleKind* kind = find_schedule(*name);
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
  if (arguments.words().size() != 1 || arguments.words()[0] != "show") {
    throw UsageError("`schedule` takes `show`",
                     "stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 8");
  }
  const ScheduleKind& kind = kind_of(arguments);
  const PipelineShape shape = shape_of(arguments);
  check_size(shape);
  if (const std::optional<ScheduleProblem> problem = kind.constraint(shape)) {
    throw UsageError(fmt::format("{}: {}", kind.name, problem->message), problem->hint);
  }
  const Schedule schedule = generate(kind, shape);
  const Program program =
      lower(schedule, prices_of(arguments, shape),
            {.blocking_messages = arguments.text("p2p").value_or("overlapped") == "blocking"});
  const Timeline timeline = run(program);
  const ScheduleView view{.schedule = schedule, .program = program, .timeline = timeline};
  if (arguments.has("json")) {
    session.out << render_schedule_json(view) << '\n';
  } else {
    session.out << render_schedule_text(view, arguments.integer("width", 120, 20, 100'000));
  }
  return kDone;
}

}  // namespace stagecraft
