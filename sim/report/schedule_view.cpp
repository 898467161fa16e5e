#include "sim/report/schedule_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/json.hpp"
#include "base/text.hpp"

namespace stagecraft {
namespace {

struct Mark {
  char letter;
  const char* fill;
  const char* word;
};

constexpr std::array<Mark, 5> kMarks = {{{'F', "▁", "forward"},
                                         {'B', "▓", "backward"},
                                         {'I', "▒", "input gradient"},
                                         {'W', "░", "weight gradient"},
                                         {'R', "▔", "recompute"}}};
constexpr const char* kIdle = "·";

const Mark* mark_of(const Program& program, TaskId task) {
  const Label& label = program.labels[program.label[task]];
  if (label.stage < 0) return nullptr;
  const auto found = std::find_if(kMarks.begin(), kMarks.end(), [&](const Mark& mark) {
    return label.name == std::string(1, mark.letter);
  });
  return found == kMarks.end() ? nullptr : &*found;
}

// The compute stream of a rank: the tasks [first, last).
struct Stream {
  std::uint32_t first = 0, last = 0;
};

std::vector<Stream> compute_streams(const ScheduleView& view) {
  std::vector<Stream> streams(view.schedule.ranks.size());
  for (std::size_t r = 0; r < view.program.resources.size(); ++r) {
    const Resource& resource = view.program.resources[ResourceId(static_cast<std::uint32_t>(r))];
    if (resource.name != "compute") continue;
    streams[static_cast<std::size_t>(resource.rank)] = {view.program.resource_begin[r],
                                                        view.program.resource_begin[r + 1]};
  }
  return streams;
}

// The column: the largest of 1, 2, 5 x 10^k fractions of a unit at which every pass has at least two columns,
// or the smallest that fits the width.
Duration column_of(const ScheduleView& view, int width) {
  Duration shortest = Duration::max();
  for (std::uint32_t t = 0; t < view.program.task_count(); ++t) {
    if (mark_of(view.program, TaskId(t)) != nullptr && view.program.duration[TaskId(t)] > Duration::zero()) {
      shortest = std::min(shortest, view.program.duration[TaskId(t)]);
    }
  }
  if (shortest == Duration::max()) return Duration(1);
  const Duration fitting = Duration(view.timeline.makespan.count() / width + 1);
  const Duration wanted = std::max(shortest / 2, Duration(1));
  return view.timeline.makespan / wanted <= width ? wanted : fitting;
}

std::int64_t columns(Duration time, Duration column) {
  return (time.count() + column.count() / 2) / column.count();
}

std::string draw_rank(const ScheduleView& view, Stream stream, Duration column) {
  std::string out;
  std::int64_t at = 0;
  for (std::uint32_t t = stream.first; t < stream.last; ++t) {
    const Mark* mark = mark_of(view.program, TaskId(t));
    if (mark == nullptr) continue;
    const std::int64_t from = columns(view.timeline.start[TaskId(t)], column);
    const std::int64_t to = columns(view.timeline.end[TaskId(t)], column);
    for (; at < from; ++at) out += kIdle;
    for (; at < to; ++at) {
      if (at == from) {
        out += static_cast<char>('0' + view.program.micro_batch[TaskId(t)] % 10);
      } else {
        out += mark->fill;
      }
    }
  }
  for (; at < columns(view.timeline.makespan, column); ++at) out += kIdle;
  return out;
}

std::string short_time(Duration time) {
  static constexpr std::pair<double, const char*> kUnits[] = {
      {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  for (const auto& [scale, unit] : kUnits) {
    const double value = static_cast<double>(time.count()) / scale;
    if (value >= 1 || scale == 1) return fmt::format("{:.4g} {}", value, unit);
  }
  return "0 s";
}

// What one pass of each kind lasts, "F 1 ms, B 2 ms": only where all passes of a kind last alike.
std::string cost_line(const ScheduleView& view) {
  std::string out;
  for (const Mark& mark : kMarks) {
    std::optional<Duration> time;
    bool alike = true;
    for (std::uint32_t t = 0; t < view.program.task_count(); ++t) {
      if (mark_of(view.program, TaskId(t)) != &mark) continue;
      const Duration here = view.program.duration[TaskId(t)];
      alike = alike && (!time || *time == here);
      time = here;
    }
    if (time && alike) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", mark.letter, short_time(*time));
  }
  return out;
}

std::string legend(const ScheduleView& view) {
  std::string out = "       ";
  for (const Mark& mark : kMarks) {
    bool used = false;
    for (std::uint32_t t = 0; t < view.program.task_count() && !used; ++t)
      used = mark_of(view.program, TaskId(t)) == &mark;
    if (used) out += fmt::format(" {} {} ", mark.fill, mark.word);
  }
  return out + fmt::format(" {} idle                 digit: micro-batch (mod 10)\n", kIdle);
}

Duration busy_time(const ScheduleView& view, Stream stream) {
  Duration busy{};
  for (std::uint32_t t = stream.first; t < stream.last; ++t) {
    if (mark_of(view.program, TaskId(t)) != nullptr) busy += view.program.duration[TaskId(t)];
  }
  return busy;
}

}  // namespace

std::string render_schedule_text(const ScheduleView& view, int width) {
  const PipelineShape& shape = view.schedule.shape;
  const Duration column = column_of(view, width);
  const std::vector<int> live = peak_in_flight(view.schedule);
  const Bubble bubble = measure_bubble(view.program, view.timeline);
  const std::string chunks = shape.chunks > 1 ? fmt::format(", {} chunks", shape.chunks) : "";
  std::string out = fmt::format("{}   {} stages{}, {} micro-batches   {}                 one column = {}\n",
                                view.schedule.name, shape.ranks, chunks, shape.micro_batches, cost_line(view),
                                short_time(column));
  const std::vector<Stream> streams = compute_streams(view);
  const std::size_t digits = std::to_string(shape.ranks - 1).size();
  for (std::size_t rank = 0; rank < streams.size(); ++rank) {
    out += fmt::format("rank {:>{}}  {}   live {}\n", rank, digits, draw_rank(view, streams[rank], column),
                       live[rank]);
  }
  const Duration wasted = bubble.makespan - bubble.ideal;
  out += legend(view);
  out += fmt::format("makespan {}   ideal {}   bubble {} = {} over ideal, {} of rank time\n",
                     short_time(bubble.makespan), short_time(bubble.ideal), short_time(wasted),
                     percent(bubble.over_ideal), percent(bubble.fraction));
  if (bubble.span != bubble.makespan)
    out += fmt::format("span {}, without a barrier at the end\n", short_time(bubble.span));
  return out;
}

std::string render_schedule_json(const ScheduleView& view) {
  const PipelineShape& shape = view.schedule.shape;
  const std::vector<int> live = peak_in_flight(view.schedule);
  const std::vector<Stream> streams = compute_streams(view);
  const Bubble bubble = measure_bubble(view.program, view.timeline);
  JsonWriter json;
  json.begin_object()
      .field("schema", "stagecraft.schedule/1")
      .field("name", std::string_view(view.schedule.name));
  json.field("stages", shape.ranks).field("micro_batches", shape.micro_batches).field("chunks", shape.chunks);
  json.key("ranks").begin_array();
  for (std::size_t rank = 0; rank < streams.size(); ++rank) {
    json.begin_object().field("rank", rank).key("actions").begin_array();
    for (const Action& action : view.schedule.ranks[rank]) json.value(std::string_view(to_string(action)));
    json.end_array()
        .field("peak_in_flight", live[rank])
        .field("busy_s", busy_time(view, streams[rank]))
        .end_object();
  }
  json.end_array()
      .field("makespan_s", bubble.makespan)
      .field("span_s", bubble.span)
      .field("ideal_s", bubble.ideal);
  json.key("bubble")
      .begin_object()
      .field("over_ideal", bubble.over_ideal)
      .field("fraction", bubble.fraction)
      .end_object();
  json.end_object();
  return json.str();
}

}  // namespace stagecraft
