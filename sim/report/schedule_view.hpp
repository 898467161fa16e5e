// A schedule on its own: the timeline of its passes at given costs, as text or JSON (contract section 3.2).
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct ScheduleView {
  const Schedule& schedule;
  const Program& program;  // lowered from the schedule, folded
  const Timeline& timeline;
};

[[nodiscard]] std::string render_schedule_json(const ScheduleView& view);

struct PictureOptions {
  int width = 120;     // columns of timeline at most
  bool color = false;  // ANSI colours beside the shapes
};

// One row per rank: a pass is its micro-batch's last digit, then a bar as long as it lasts; the bars of F, B,
// I and W differ by shape, and those of forwards by height from chunk to chunk, so that colour is never
// needed.
[[nodiscard]] std::string render_schedule_text(const ScheduleView& view, const PictureOptions& options = {});

}  // namespace stagecraft
