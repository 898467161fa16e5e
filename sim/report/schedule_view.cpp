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
  const char* paint;  // ANSI
};

constexpr std::array<Mark, 5> kMarks = {{{'F', "▁", "forward", "\x1b[34m"},
                                         {'B', "▓", "backward", "\x1b[32m"},
                                         {'I', "▒", "input gradient", "\x1b[36m"},
                                         {'W', "░", "weight gradient", "\x1b[33m"},
                                         {'R', "▔", "recompute", "\x1b[35m"}}};
constexpr const char* kIdle = "·";
// Forwards of chunk 0, 1, ... of a rank.
constexpr std::array<const char*, 7> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇"};

const Mark* mark_of(const Program& program, TaskId task) {
  const Label& label = program.labels[program.label[task]];
  if (label.stage < 0) return nullptr;
  const auto found = std::find_if(kMarks.begin(), kMarks.end(), [&](const Mark& mark) {
    return label.name == std::string(1, mark.letter);
  });
  return found == kMarks.end() ? nullptr : &*found;
}

const char* fill_of(const ScheduleView& view, const Mark& mark, TaskId task) {
  if (mark.letter != 'F') return mark.fill;
  const int chunk = view.program.labels[view.program.label[task]].stage / view.schedule.shape.ranks;
  return kHeights[static_cast<std::size_t>(chunk) % kHeights.size()];
}

std::string painted(const std::string& text, const Mark& mark, bool color) {
  return color ? mark.paint + text + "\x1b[0m" : text;
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

// The shortest pass that takes any time; 0 when none does.
Duration shortest_pass(const ScheduleView& view) {
  Duration shortest{};
  for (std::uint32_t t = 0; t < view.program.task_count(); ++t) {
    const Duration here = view.program.duration[TaskId(t)];
    if (mark_of(view.program, TaskId(t)) == nullptr || here == Duration::zero()) continue;
    shortest = shortest == Duration::zero() ? here : std::min(shortest, here);
  }
  return shortest;
}

// The smallest of 1, 2, 5 x 10^k ns that is not below `time`.
Duration round_up(Duration time) {
  for (Duration step{1};; step *= 10) {
    for (const int times : {1, 2, 5}) {
      if (step * times >= time) return step * times;
    }
  }
}

// What one column of the picture lasts: half the shortest pass, or else the shortest round time at which the
// picture fits the width.
Duration column_of(const ScheduleView& view, int width) {
  const Duration wanted = std::max(shortest_pass(view) / 2, Duration(1));
  if (view.timeline.makespan / wanted <= width) return wanted;
  return round_up(Duration((view.timeline.makespan.count() + width - 1) / width));
}

std::int64_t columns(Duration time, Duration column) {
  return (time.count() + column.count() / 2) / column.count();
}

std::string draw_rank(const ScheduleView& view, Stream stream, Duration column, bool color) {
  std::string out;
  std::int64_t at = 0;
  for (std::uint32_t t = stream.first; t < stream.last; ++t) {
    const Mark* mark = mark_of(view.program, TaskId(t));
    if (mark == nullptr) continue;
    const std::int64_t from = columns(view.timeline.start[TaskId(t)], column);
    const std::int64_t to = columns(view.timeline.end[TaskId(t)], column);
    for (; at < from; ++at) out += kIdle;
    std::string bar;
    for (; at < to; ++at) {
      if (at == from && to - from > 1) {
        bar += static_cast<char>('0' + view.program.micro_batch[TaskId(t)] % 10);
      } else {
        bar += fill_of(view, *mark, TaskId(t));
      }
    }
    if (!bar.empty()) out += painted(bar, *mark, color);
  }
  for (; at < columns(view.timeline.makespan, column); ++at) out += kIdle;
  return out;
}

struct TimeUnit {
  double scale;  // in nanoseconds
  const char* name;
};

// The largest unit of which `time` is at least one.
TimeUnit unit_of(Duration time) {
  constexpr std::array<TimeUnit, 4> kUnits = {{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  const auto fits = [&](const TimeUnit& unit) { return static_cast<double>(time.count()) >= unit.scale; };
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), fits);
  return unit == kUnits.end() ? kUnits.front() : *unit;
}

std::string time_in(TimeUnit unit, Duration time) {
  return fmt::format("{:.4g} {}", static_cast<double>(time.count()) / unit.scale, unit.name);
}

std::string short_time(Duration time) {
  return time_in(unit_of(time), time);
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

// "▁▂ forward of chunk 0, 1": the height says which.
std::string forward_legend(int chunks) {
  if (chunks == 1) return fmt::format("{} forward", kHeights[0]);
  std::string fills, numbers;
  const std::size_t shown = std::min(static_cast<std::size_t>(chunks), kHeights.size());
  for (std::size_t chunk = 0; chunk < shown; ++chunk) {
    fills += kHeights[chunk];
    numbers += fmt::format("{}{}", chunk == 0 ? "" : ", ", chunk);
  }
  const bool again = shown < static_cast<std::size_t>(chunks);
  return fmt::format("{} forward of chunk {}{}", fills, numbers, again ? " (mod 7)" : "");
}

std::string legend(const ScheduleView& view, bool color) {
  std::string out = "       ";
  for (const Mark& mark : kMarks) {
    bool used = false;
    for (std::uint32_t t = 0; t < view.program.task_count() && !used; ++t)
      used = mark_of(view.program, TaskId(t)) == &mark;
    if (!used) continue;
    const std::string words = mark.letter == 'F' ? forward_legend(view.schedule.shape.chunks)
                                                 : fmt::format("{} {}", mark.fill, mark.word);
    out += " " + painted(words, mark, color) + " ";
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

std::string render_schedule_text(const ScheduleView& view, const PictureOptions& options) {
  const PipelineShape& shape = view.schedule.shape;
  const Duration column = column_of(view, options.width);
  const std::vector<int> live = peak_in_flight(view.schedule);
  const Bubble bubble = measure_bubble(view.program, view.timeline);
  const std::string chunks = shape.chunks > 1 ? fmt::format(", {} chunks", shape.chunks) : "";
  std::string out = fmt::format("{}   {} stages{}, {} micro-batches   {}                 one column = {}\n",
                                view.schedule.name, shape.ranks, chunks, shape.micro_batches, cost_line(view),
                                time_in(unit_of(shortest_pass(view)), column));
  const std::vector<Stream> streams = compute_streams(view);
  const std::size_t digits = std::to_string(shape.ranks - 1).size();
  for (std::size_t rank = 0; rank < streams.size(); ++rank) {
    out += fmt::format("rank {:>{}}  {}   live {}\n", rank, digits,
                       draw_rank(view, streams[rank], column, options.color), live[rank]);
  }
  const Duration wasted = bubble.makespan - bubble.ideal;
  out += legend(view, options.color);
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
