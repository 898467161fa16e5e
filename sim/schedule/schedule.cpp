#include "sim/schedule/schedule.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {

char letter(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return 'F';
    case Pass::kBackward:
      return 'B';
    case Pass::kInputGradient:
      return 'I';
    case Pass::kWeightGradient:
      return 'W';
    case Pass::kRecompute:
      return 'R';
  }
  SC_CHECK(false, "a pass outside the enumeration");
  return '?';
}

std::string to_string(const Action& action) {
  return std::to_string(action.stage) + letter(action.pass) + std::to_string(action.micro_batch);
}

Schedule generate(const ScheduleKind& kind, const PipelineShape& shape) {
  SC_CHECK(kind.constraint != nullptr && kind.rank_order != nullptr,
           "a row of schedule_kinds() is incomplete");
  if (const auto problem = kind.constraint(shape)) SC_CHECK(false, problem->message);
  Schedule schedule{.name = std::string(kind.name), .shape = shape, .ranks = {}};
  schedule.ranks.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) schedule.ranks.push_back(kind.rank_order(shape, rank));
  return schedule;
}

std::vector<int> peak_in_flight(const Schedule& schedule) {
  std::vector<int> peaks;
  peaks.reserve(schedule.ranks.size());
  for (const std::vector<Action>& order : schedule.ranks) {
    int live = 0;
    int peak = 0;
    for (const Action& action : order) {
      if (action.pass == Pass::kForward) peak = std::max(peak, ++live);
      if (action.pass == Pass::kBackward || action.pass == Pass::kWeightGradient) --live;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace stagecraft
