#include "sim/report/schedule_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/ceil_div.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/schedule/notation.hpp"

namespace stagecraft {
namespace {

struct Mark {
  Pass pass;
  const char* even;  // of chunks 0, 2, ...
  const char* odd;
  const char* paint;  // ANSI
};

constexpr std::array<Mark, 5> kMarks = {{{Pass::kForward, "▁", "▂", "\x1b[34m"},
                                         {Pass::kBackward, "▓", "█", "\x1b[32m"},
                                         {Pass::kInputGradient, "▒", "▚", "\x1b[36m"},
                                         {Pass::kWeightGradient, "░", "╱", "\x1b[33m"},
                                         {Pass::kRecompute, "▔", "▔", "\x1b[35m"}}};
constexpr const char* kPairFill = "═";
constexpr const char* kPairPaint = "\x1b[32m";
constexpr const char* kIdle = "·";
// Forwards of chunk 0, 1, ... of a rank.
constexpr std::array<const char*, 7> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇"};

const Mark& mark_of(const Action& action) {
  return *std::ranges::find(kMarks, action.pass, &Mark::pass);
}

// Number of distinguishable stages of a rank, and the one that an action runs.
int chunks_of(const Schedule& schedule) {
  return schedule.shape.chunks * schedule.places().copies();
}

int chunk_of(const Schedule& schedule, const Action& action) {
  return schedule.places().chunk_of(action.stage, schedule.copy_of(action.micro_batch));
}

const char* fill_of(const Schedule& schedule, const Action& action) {
  const int chunk = chunk_of(schedule, action);
  if (action.pass == Pass::kForward) return kHeights[static_cast<std::size_t>(chunk) % kHeights.size()];
  const Mark& mark = mark_of(action);
  return chunk % 2 == 0 ? mark.even : mark.odd;
}

std::string painted(const std::string& text, const char* paint, bool color) {
  return color ? paint + text + "\x1b[0m" : text;
}

// The shortest pass with a nonzero time; 0 when all are zero.
Duration shortest_pass(const ScheduleView& view) {
  std::int64_t shortest = 0;
  for (const std::vector<PassTime>& rank : view.play.ranks) {
    for (const PassTime& time : rank) {
      const std::int64_t lasts = time.end - time.start;
      if (lasts > 0) shortest = shortest == 0 ? lasts : std::min(shortest, lasts);
    }
  }
  return Duration(shortest);
}

// The smallest of 1, 2, 5 x 10^k ns that is not below `time`.
Duration round_up(Duration time) {
  for (Duration step{1};; step *= 10) {
    for (const int times : {1, 2, 5}) {
      if (step * times >= time) return step * times;
    }
  }
}

// Time of one column of the picture: half the shortest pass, or the shortest round time at which the picture
// fits the width.
Duration column_of(const ScheduleView& view, int width) {
  const Duration wanted = std::max(shortest_pass(view) / 2, Duration(1));
  if (view.play.makespan / wanted.count() <= width) return wanted;
  return round_up(Duration(ceil_div(view.play.makespan, width)));
}

std::int64_t columns(std::int64_t time, Duration column) {
  return (time + column.count() / 2) / column.count();
}

char digit_of(const Action& action) {
  return static_cast<char>('0' + action.micro_batch % 10);
}

// The row of one rank as it grows.
class RankRow {
 public:
  RankRow(const ScheduleView& view, std::size_t rank, Duration column, bool color)
      : drawn_(view.drawn), times_(view.play.ranks[rank]), color_(color) {
    const std::vector<Action>& order = view.drawn.ranks[rank];
    for (std::size_t i = 0; i < order.size(); ++i) {
      idle_until(columns(times_[i].start, column));
      const std::int64_t to = columns(times_[i].end, column);
      if (order[i].fused) {
        draw_pair(order[i], order[i + 1], to);
        ++i;
      } else {
        draw(order[i], to);
      }
    }
    idle_until(columns(view.play.makespan, column));
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  void idle_until(std::int64_t column) {
    for (; at_ < column; ++at_) text_ += kIdle;
  }

  void draw(const Action& action, std::int64_t to) {
    std::string bar;
    if (to - at_ > 1) bar += digit_of(action), ++at_;
    for (; at_ < to; ++at_) bar += fill_of(drawn_, action);
    if (!bar.empty()) text_ += painted(bar, mark_of(action).paint, color_);
  }

  void draw_pair(const Action& forward, const Action& backward, std::int64_t to) {
    const std::int64_t from = at_;
    const std::int64_t middle = (from + to) / 2;
    std::string bar;
    for (; at_ < to; ++at_) {
      if (to - from > 3 && at_ == from) {
        bar += digit_of(forward);
      } else if (to - from > 3 && at_ == middle) {
        bar += digit_of(backward);
      } else {
        bar += kPairFill;
      }
    }
    if (!bar.empty()) text_ += painted(bar, kPairPaint, color_);
  }

  const Schedule& drawn_;
  const std::vector<PassTime>& times_;
  bool color_;
  std::int64_t at_ = 0;
  std::string text_;
};

struct TimeUnit {
  double scale;  // in nanoseconds
  const char* name;
};

// The largest unit of which `time` is at least one.
TimeUnit unit_of(Duration time) {
  constexpr std::array<TimeUnit, 4> kUnits = {{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  const auto fits = [&](const TimeUnit& unit) { return static_cast<double>(time.count()) >= unit.scale; };
  const auto unit = std::ranges::find_if(kUnits, fits);
  return unit == kUnits.end() ? kUnits.front() : *unit;
}

std::string time_in(TimeUnit unit, Duration time) {
  return fmt::format("{} {}", four_digits(static_cast<double>(time.count()) / unit.scale), unit.name);
}

std::string short_time(std::int64_t nanoseconds) {
  const Duration time(nanoseconds);
  return time_in(unit_of(time), time);
}

// Duration of the passes of one kind, where all are equal.
class Alike {
 public:
  void add(std::int64_t time) {
    alike_ = alike_ && (!time_ || *time_ == time);
    time_ = time;
  }
  [[nodiscard]] std::optional<std::int64_t> time() const { return alike_ ? time_ : std::nullopt; }
  [[nodiscard]] bool any() const { return time_.has_value(); }

 private:
  std::optional<std::int64_t> time_;
  bool alike_ = true;
};

// Durations of the passes of each mark; the last entry is that of pairs.
std::array<Alike, kMarks.size() + 1> lengths_of(const ScheduleView& view) {
  std::array<Alike, kMarks.size() + 1> lengths;
  for (std::size_t rank = 0; rank < view.drawn.ranks.size(); ++rank) {
    const std::vector<Action>& order = view.drawn.ranks[rank];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const PassTime& time = view.play.ranks[rank][i];
      const auto mark =
          order[i].fused ? kMarks.size() : static_cast<std::size_t>(&mark_of(order[i]) - kMarks.data());
      lengths[mark].add(time.end - time.start);
      if (order[i].fused) ++i;
    }
  }
  return lengths;
}

std::string cost_line(const ScheduleView& view) {
  std::string out;
  const auto lengths = lengths_of(view);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto time = lengths[i].time();
    const std::string name = i < kMarks.size() ? std::string(1, letter(kMarks[i].pass)) : "pair";
    if (time) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, short_time(*time));
  }
  return out;
}

// "▁▂ forward of chunk 0, 1": the height says which.
std::string forward_legend(const Schedule& schedule) {
  const int chunks = chunks_of(schedule);
  if (chunks == 1) return fmt::format("{} forward", kHeights[0]);
  if (schedule.places().copies() > 1)
    return fmt::format("{}{} forward going down, up", kHeights[0], kHeights[1]);
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
  const auto lengths = lengths_of(view);
  const bool shades = chunks_of(view.schedule) > 1;
  for (std::size_t i = 0; i < kMarks.size(); ++i) {
    if (!lengths[i].any()) continue;
    const Mark& mark = kMarks[i];
    const std::string fills =
        shades && mark.odd != mark.even ? fmt::format("{}{}", mark.even, mark.odd) : mark.even;
    const std::string words = mark.pass == Pass::kForward ? forward_legend(view.schedule)
                                                          : fmt::format("{} {}", fills, word_of(mark.pass));
    out += " " + painted(words, mark.paint, color) + " ";
  }
  if (lengths[kMarks.size()].any()) {
    out += " " + painted(fmt::format("{} fused pair: forward, then backward", kPairFill), kPairPaint, color) +
           " ";
  }
  return out + fmt::format(" {} idle                 digit: micro-batch (mod 10)\n", kIdle);
}

// Durations in one iteration: the played one where the order drains, otherwise the steady state.
struct Lengths {
  std::int64_t makespan = 0, span = 0, ideal = 0;
  double over_ideal = 0, fraction = 0;
};

std::vector<std::int64_t> work_of(const ScheduleView& view) {
  std::vector<std::int64_t> work = view.play.busy;
  const std::int64_t iterations = view.drawn.shape.micro_batches / view.schedule.shape.micro_batches;
  for (std::int64_t& time : work) time /= iterations;
  return work;
}

Lengths measure(const ScheduleView& view) {
  Lengths lengths{.makespan = view.play.makespan,
                  .span = view.play.span,
                  .ideal = view.play.ideal(),
                  .over_ideal = view.play.bubble_over_ideal(),
                  .fraction = view.play.bubble_fraction()};
  if (view.schedule.flush) return lengths;
  Play steady;
  steady.busy = work_of(view);
  steady.makespan = view.period;
  return {.makespan = view.period,
          .span = view.period,
          .ideal = steady.ideal(),
          .over_ideal = steady.bubble_over_ideal(),
          .fraction = steady.bubble_fraction()};
}

std::string length_lines(const ScheduleView& view) {
  const Lengths lengths = measure(view);
  std::string out = fmt::format("{} {}   ideal {}   bubble {} = {} over ideal, {} of rank time\n",
                                view.schedule.flush ? "makespan" : "an iteration of the steady state",
                                short_time(lengths.makespan), short_time(lengths.ideal),
                                short_time(lengths.makespan - lengths.ideal), percent(lengths.over_ideal),
                                percent(lengths.fraction));
  if (lengths.span != lengths.makespan)
    out += fmt::format("span {}, without a barrier at the end\n", short_time(lengths.span));
  if (!view.schedule.flush) {
    out += fmt::format("drawn: the first {} iterations; it drains only when the training ends\n",
                       view.drawn.shape.micro_batches / view.schedule.shape.micro_batches);
  }
  return out;
}

}  // namespace

std::string render_schedule_text(const ScheduleView& view, const PictureOptions& options) {
  const PipelineShape& shape = view.schedule.shape;
  const Duration column = column_of(view, options.width);
  const std::vector<int> live = peak_in_flight(view.schedule);
  const std::string chunks = shape.chunks > 1 ? fmt::format(", {} chunks", shape.chunks) : "";
  std::string out =
      fmt::format("{}   {}{}, {}   {}                 one column = {}\n", view.schedule.name,
                  counted(shape.ranks, "stage"), chunks, counted(shape.micro_batches, "micro-batch"),
                  cost_line(view), time_in(unit_of(std::max(column, shortest_pass(view))), column));
  const std::size_t digits = std::to_string(shape.ranks - 1).size();
  for (std::size_t rank = 0; rank < view.play.ranks.size(); ++rank) {
    out += fmt::format("rank {:>{}}  {}   live {}\n", rank, digits,
                       RankRow(view, rank, column, options.color).take(), live[rank]);
  }
  return out + legend(view, options.color) + length_lines(view);
}

std::string render_schedule_json(const ScheduleView& view) {
  const PipelineShape& shape = view.schedule.shape;
  const std::vector<int> live = peak_in_flight(view.schedule);
  const std::vector<std::int64_t> work = work_of(view);
  const Lengths lengths = measure(view);
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.schedule/1").field("name", view.schedule.name);
  json.field("stages", shape.ranks).field("micro_batches", shape.micro_batches).field("chunks", shape.chunks);
  json.key("ranks").begin_array();
  for (std::size_t rank = 0; rank < view.schedule.ranks.size(); ++rank) {
    json.begin_object()
        .field("rank", rank)
        .field("actions", words_of(view.schedule.ranks[rank]))
        .field("peak_in_flight", live[rank])
        .field("busy_s", Duration(work[rank]))
        .end_object();
  }
  json.end_array()
      .field("makespan_s", Duration(lengths.makespan))
      .field("span_s", Duration(lengths.span))
      .field("ideal_s", Duration(lengths.ideal));
  json.key("bubble")
      .begin_object()
      .field("over_ideal", lengths.over_ideal)
      .field("fraction", lengths.fraction)
      .end_object();
  json.end_object();
  return json.str();
}

}  // namespace stagecraft
