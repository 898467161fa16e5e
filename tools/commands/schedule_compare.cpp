// `schedule compare`: every schedule, and orders from files, at the same costs of the model, and which is best
// under which memory.
//
// Costs are of one stage, a p-th of the model, so that schedules with chunks are comparable: a chunk of v
// takes a v-th. Memory counts in activations of such stages as well; the second copy of the weights that a
// bidirectional schedule holds is said beside it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "sim/schedule/unrolled.hpp"
#include "tools/commands/schedule_lab.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kOfCompare[] = {
    "stages",          "micro-batches", "chunks", "micro-batch-group", "forward", "input-gradient",
    "weight-gradient", "recompute",     "fused",  "message",           "p2p",     "memory-limit"};
constexpr std::size_t kLongestBar = 40, kShortestBar = 12;  // columns

struct Row {
  std::string name;
  int chunks = 1;
  std::string refused;  // why there is no more in this row
  std::int64_t makespan = 0, span = 0, ideal = 0;
  double over_ideal = 0, fraction = 0;  // the bubble, as of `schedule show`
  double stages_held = 0;               // activations of whole stages, on the worst rank
  int copies = 1;                       // of the weights
  bool drains = true;                   // or weights are stale, which no time can be weighed against
  bool fits = true;
};

// Costs of a chunk of the stage, exact in units of a nanosecond divided by the chunks.
ScheduleCosts chunk_costs(const ScheduleCosts& stage, int chunks) {
  ScheduleCosts costs = stage;
  costs.message *= chunks;
  costs.memory_limit *= chunks;
  return costs;
}

// Fills in the figures of an order; costs are of a stage.
void measure(const Schedule& schedule, const ScheduleCosts& costs, Row& row) {
  const int chunks = schedule.shape.chunks;
  const ScheduleCosts of_chunk = chunk_costs(costs, chunks);
  Play times = play(schedule.flush ? schedule : unrolled(schedule, 2), of_chunk);
  if (!schedule.flush) {
    times.makespan = times.span = period(schedule, of_chunk);
    for (std::int64_t& work : times.busy) work /= 2;
  }
  const auto nanoseconds = [&](std::int64_t units) { return (units + chunks / 2) / chunks; };
  row.makespan = nanoseconds(times.makespan);
  row.span = nanoseconds(times.span);
  row.ideal = nanoseconds(times.ideal());
  row.over_ideal = times.bubble_over_ideal();
  row.fraction = times.bubble_fraction();
  row.stages_held = static_cast<double>(std::ranges::max(peak_in_flight(schedule))) / chunks;
  row.fits = costs.memory_limit == 0 || row.stages_held <= costs.memory_limit;
}

Row row_of(const ScheduleKind& kind, const Arguments& arguments, int limit) {
  PipelineShape shape = pipeline_shape(arguments, 2);
  if (!kind.chunked) shape.chunks = 1;
  if (!kind.grouped) shape.group = 0;
  Row row{.name = std::string(kind.name),
          .chunks = shape.chunks,
          .refused = {},
          .copies = std::max(places_of(kind.placement, shape).copies(), kind.weight_versions),
          .drains = kind.flush};
  if (const auto problem = kind.constraint(shape)) {
    row.refused = problem->message;
    return row;
  }
  ScheduleCosts costs = schedule_costs(arguments, kind.recomputes);
  costs.memory_limit = limit;
  const Schedule schedule = generate(kind, shape, chunk_costs(costs, shape.chunks));
  check_pairs(schedule, costs);
  measure(schedule, costs, row);
  return row;
}

// Of an order from a file; nullopt after a report.
std::optional<Row> row_of(const std::string& file, const Arguments& arguments, int limit,
                          Diagnostics& diagnostics) {
  const std::optional<OrderFile> read = read_order_file(file, diagnostics);
  if (!read) return std::nullopt;
  const Schedule& schedule = read->schedule;
  const PipelineShape wanted = pipeline_shape(arguments, 1);
  Row row{.name = printable(file),
          .chunks = schedule.shape.chunks,
          .refused = {},
          .copies = schedule.places().copies(),
          .drains = schedule.flush};
  if (schedule.shape.ranks != wanted.ranks || schedule.shape.micro_batches != wanted.micro_batches) {
    row.refused = fmt::format("it is of {} and {}", counted(schedule.shape.ranks, "stage"),
                              counted(schedule.shape.micro_batches, "micro-batch"));
    return row;
  }
  ScheduleCosts costs = schedule_costs(arguments, false);
  costs.memory_limit = limit;
  check_pairs(schedule, costs);
  measure(schedule, costs, row);
  return row;
}

std::string time_of(std::int64_t nanoseconds) {
  return fmt::format("{:.5g} s", static_cast<double>(nanoseconds) / 1e9);
}

// Work as a full bar, bubble as a light one; the longest has `columns`.
std::string bar_of(const Row& row, std::int64_t longest, std::size_t columns) {
  const auto cells = [&](std::int64_t time) {
    return (time * static_cast<std::int64_t>(columns) + longest / 2) / std::max<std::int64_t>(longest, 1);
  };
  std::string bar;
  for (std::int64_t i = 0; i < cells(row.makespan); ++i) bar += i < cells(row.ideal) ? "▓" : "░";
  return bar;
}

// The fastest of the rows for each memory at which it changes: more memory, less time.
std::vector<const Row*> best_by_memory(const std::vector<Row>& rows) {
  std::vector<const Row*> ranked;
  for (const Row& row : rows) {
    if (row.refused.empty() && row.drains) ranked.push_back(&row);
  }
  std::ranges::stable_sort(ranked, [](const Row* a, const Row* b) {
    return std::pair(a->stages_held, a->makespan) < std::pair(b->stages_held, b->makespan);
  });
  std::vector<const Row*> best;
  for (const Row* row : ranked) {
    if (best.empty() || row->makespan < best.back()->makespan) best.push_back(row);
  }
  return best;
}

// The figures, and beside them bars in what is left of a terminal.
std::string table_of(const std::vector<const Row*>& rows) {
  TextTable figures({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                     Align::kRight});
  figures.row({"schedule", "v", "w", "makespan", "span", "bubble", "held"});
  std::int64_t longest = 0;
  for (const Row* row : rows) {
    figures.row({row->name + (row->drains ? "" : " *"), std::to_string(row->chunks),
                 std::to_string(row->copies), time_of(row->makespan), time_of(row->span),
                 percent(row->over_ideal), fmt::format("{:.4g}{}", row->stages_held, row->fits ? "" : " !")});
    longest = std::max(longest, row->makespan);
  }
  const std::string text = figures.str();
  const std::vector<std::string_view> lines = split(text, '\n');
  const std::size_t taken = lines.front().size() + 2;  // the head, which ends the last column
  const std::size_t bar =
      std::clamp(kTerminalWidth - std::min(taken, kTerminalWidth), kShortestBar, kLongestBar);
  std::string out = fmt::format("{}  work ▓ bubble ░\n", lines.front());
  for (std::size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("{}  {}\n", lines[i + 1], bar_of(*rows[i], longest, bar));
  return out;
}

void print_text(const std::vector<Row>& rows, int limit, Session& session) {
  std::vector<const Row*> shown;
  for (const Row& row : rows)
    if (row.refused.empty()) shown.push_back(&row);
  session.out << table_of(shown);
  for (const Row& row : rows)
    if (!row.refused.empty())
      session.out << wrapped_text("", "  ", fmt::format("{}: not at this size: {}", row.name, row.refused));
  session.out << "costs are of one stage: each of v chunks takes a v-th of them\n";
  session.out << "w copies of the weights; bubble over the ideal; held: activations of stages\n";
  session.out << "* never drains: a period, with stale weights\n";
  std::vector<std::string> best_of;
  for (const Row* row : best_by_memory(rows))
    best_of.push_back(fmt::format("{:.4g}: {}", row->stages_held, row->name));
  session.out << wrapped_text("best for the activations of so many stages a rank: ", "  ",
                              join(best_of, ", "));
  if (limit == 0) return;
  std::vector<Row> fitting = rows;
  std::erase_if(fitting, [](const Row& row) { return !row.fits || !row.drains; });
  const std::vector<const Row*> best = best_by_memory(fitting);
  session.out << (best.empty() ? fmt::format("nothing holds at most {} (! = holds more)\n", limit)
                               : fmt::format("best with at most {} (! = holds more): {}, {}\n", limit,
                                             best.back()->name, time_of(best.back()->makespan)));
}

void print_json(const std::vector<Row>& rows, Session& session) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.schedule-compare/1").field("costs_of", "stage");
  json.key("schedules").begin_array();
  for (const Row& row : rows) {
    json.begin_object().field("name", row.name).field("chunks", row.chunks);
    if (!row.refused.empty()) {
      json.field("refused", row.refused).end_object();
      continue;
    }
    json.field("makespan_s", Duration(row.makespan))
        .field("span_s", Duration(row.span))
        .field("ideal_s", Duration(row.ideal))
        .key("bubble")
        .begin_object()
        .field("over_ideal", row.over_ideal)
        .field("fraction", row.fraction)
        .end_object()
        .field("stages_held", row.stages_held)
        .field("weight_copies", row.copies)
        .field("fits", row.fits)
        .end_object();
  }
  json.end_array().end_object();
  session.out << json.str() << '\n';
}

}  // namespace

int schedule_compare(const Words& files, const Arguments& arguments, Session& session) {
  const std::string example = "stagecraft schedule compare --stages 4 --micro-batches 16";
  if (arguments.has("schedule"))
    throw UsageError("--schedule: `schedule compare` shows all of them", example);
  if (std::ranges::count(files, "-") > 1)
    throw UsageError("standard input can be read only once", "give - once");
  if (arguments.text("p2p").value_or("overlapped") != "overlapped")
    throw UsageError("--p2p: `schedule compare` sends overlapped, which all schedules can", example);
  refuse_without_effect(arguments, "compare", kOfCompare, example);
  const int limit = arguments.integer("memory-limit", 0, 1, 1'000'000);
  refuse_large(pipeline_shape(arguments, 2));
  std::vector<Row> rows;
  for (const ScheduleKind& kind : schedule_kinds()) rows.push_back(row_of(kind, arguments, limit));
  Diagnostics diagnostics;
  for (const std::string& file : files)
    if (std::optional<Row> row = row_of(file, arguments, limit, diagnostics)) rows.push_back(*std::move(row));
  if (diagnostics.has_errors()) return refuse_order(diagnostics, arguments, session);
  if (arguments.has("json")) {
    print_json(rows, session);
  } else {
    print_text(rows, limit, session);
  }
  return kDone;
}

}  // namespace stagecraft
