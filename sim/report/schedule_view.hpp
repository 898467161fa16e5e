// A schedule on its own: the timeline of its passes at given costs, as text or as `stagecraft.schedule/1`.
#pragma once

#include <string>

#include "sim/schedule/play.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// All times are nanoseconds. An asynchronous order is shown as iterations unrolled, and lasts its period.
struct ScheduleView {
  const Schedule& schedule;  // the output of the generator
  const Schedule& drawn;     // the schedule that `play` played: the same, or unrolled where it never drains
  const Play& play;
  std::int64_t period = 0;  // of the schedule
};

[[nodiscard]] std::string render_schedule_json(const ScheduleView& view);

struct PictureOptions {
  int width = 120;     // columns of timeline at most
  bool color = false;  // ANSI colours beside the shapes
};

// One row per rank: a pass is its micro-batch's last digit, then a bar as long as it lasts; the bars of F, B,
// I, W and R differ by shape, those of forwards by height from chunk to chunk, and those of backwards by
// shade between even and odd chunks, so that colour is never needed. Both directions of a bidirectional
// schedule are chunks 0 and 1. A fused pair is one bar, with the digit of its backward in the middle.
[[nodiscard]] std::string render_schedule_text(const ScheduleView& view, const PictureOptions& options = {});

}  // namespace stagecraft
