// `stagecraft schedule`: one word says which part of the laboratory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "base/text.hpp"
#include "sim/report/schedule_view.hpp"
#include "sim/schedule/unrolled.hpp"
#include "tools/command_line/option_checks.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/schedule_lab.hpp"

namespace stagecraft {
namespace {

struct Part {
  std::string_view name;
  int (*run)(const Words&, const Arguments&, Session&);
};

constexpr std::array kParts{Part{"show", schedule_show},     Part{"compare", schedule_compare},
                            Part{"check", schedule_check},   Part{"export", schedule_export},
                            Part{"import", schedule_import}, Part{"search", schedule_search}};

constexpr const char* kExample = "stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 8";

// The options of an order by name, with its costs and its picture.
constexpr std::string_view kOfShow[] = {
    "schedule",       "stages",          "micro-batches", "chunks", "micro-batch-group", "forward",
    "input-gradient", "weight-gradient", "recompute",     "fused",  "message",           "p2p",
    "width"};

// An option without effect is said, not swallowed.
void note_fused(const Arguments& arguments, const Schedule& schedule, Session& session) {
  if (!arguments.has("fused") || arguments.has("quiet")) return;
  for (const std::vector<Action>& order : schedule.ranks) {
    if (std::ranges::any_of(order, &Action::fused)) return;
  }
  session.err << fmt::format("stagecraft: warning: --fused had no effect: {} has no fused pairs\n",
                             schedule.name);
}

// Prints the closed forms of a schedule, for its chunks and for equal costs on every stage.
void print_forms(const ScheduleKind& kind, Session& session) {
  session.out << fmt::format(
      "bubble {}   peak {}   r: rank, p ranks, m micro-batches, v chunks, N group\n{}\n", kind.bubble_form,
      kind.peak_form, kind.citation);
}

int picture_width(const Arguments& arguments) {
  return arguments.integer("width", 120, 20, 100'000);
}

int draw(const Schedule& schedule, bool recomputes, const Arguments& arguments, Session& session) {
  const ScheduleCosts costs = schedule_costs(arguments, recomputes);
  check_pairs(schedule, costs);
  const Schedule drawn = schedule.flush ? schedule : unrolled(schedule, 2);
  const Play times = timed(drawn, costs, arguments);
  note_fused(arguments, schedule, session);
  const ScheduleView view{.schedule = schedule,
                          .drawn = drawn,
                          .play = times,
                          .period = schedule.flush ? 0 : period(schedule, costs)};
  if (arguments.has("json")) {
    session.out << render_schedule_json(view) << '\n';
  } else {
    session.out << render_schedule_text(
        view, {.width = picture_width(arguments), .color = wants_color(arguments, session)});
  }
  return kDone;
}

}  // namespace

int schedule_show(const Words& words, const Arguments& arguments, Session& session) {
  refuse_without_effect(arguments, "show", kOfShow, kExample);
  if (words.empty()) {
    OptionChecks checks;
    const auto schedule = checks.read([&] { return named_schedule(arguments); });
    (void)checks.read([&] { return message_way(arguments); });
    (void)checks.read([&] { return picture_width(arguments); });
    checks.done();
    const ScheduleKind& kind = schedule_kind(arguments);
    const int done = draw(*schedule, kind.recomputes, arguments, session);
    if (arguments.has("verbose") && !arguments.has("json")) print_forms(kind, session);
    return done;
  }
  if (words.size() > 1)
    throw UsageError(fmt::format("`schedule show` takes one file, not '{}' as well", words[1]), kExample);
  for (const std::string_view option :
       {"schedule", "stages", "micro-batches", "chunks", "micro-batch-group"}) {
    if (arguments.has(option))
      throw UsageError(fmt::format("--{} does not go with a file, which says its order itself", option),
                       kExample);
  }
  Diagnostics diagnostics;
  const std::optional<OrderFile> file = read_order_file(words[0], diagnostics);
  return file ? draw(file->schedule, false, arguments, session)
              : refuse_order(diagnostics, arguments, session);
}

int schedule_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& words = arguments.words();
  if (words.empty())
    throw UsageError("`schedule` takes `show`, `compare`, `check`, `export`, `import` or `search`", kExample);
  const auto part = std::ranges::find(kParts, words[0], &Part::name);
  if (part == kParts.end()) {
    std::vector<std::string> names;
    for (const Part& known : kParts) names.emplace_back(known.name);
    throw UsageError(fmt::format("`schedule` has no part '{}'", words[0]), suggest(words[0], names));
  }
  return part->run({words.begin() + 1, words.end()}, arguments, session);
}

}  // namespace stagecraft
