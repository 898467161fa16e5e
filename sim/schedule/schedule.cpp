#include "sim/schedule/schedule.hpp"

#include <algorithm>
#include <utility>

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

int rank_of(Placement placement, const PipelineShape& shape, int stage, int micro_batch) {
  const int p = shape.ranks;
  switch (placement) {
    case Placement::kLoop:
      return stage % p;
    case Placement::kV:
    case Placement::kWave:
      return stage / p % 2 == 0 ? stage % p : p - 1 - stage % p;
    case Placement::kBidirectional:
      return micro_batch < shape.micro_batches / 2 ? stage : p - 1 - stage;
    case Placement::kBidirectionalUnits:
      return micro_batch % p < p / 2 ? stage : p - 1 - stage;
  }
  SC_CHECK(false, "a placement outside the enumeration");
  return 0;
}

Schedule generate(const ScheduleKind& kind, const PipelineShape& shape, const ScheduleCosts& costs) {
  SC_CHECK(kind.constraint != nullptr && kind.generate != nullptr, "a row of schedule_kinds() is incomplete");
  if (const auto problem = kind.constraint(shape)) SC_CHECK(false, problem->message);
  Schedule schedule = kind.generate(shape, costs);
  SC_CHECK(schedule.placement == kind.placement, "the row and its generator disagree about the placement");
  schedule.name = std::string(kind.name);
  return schedule;
}

std::vector<int> peak_in_flight(const Schedule& schedule) {
  std::vector<int> peaks;
  peaks.reserve(schedule.ranks.size());
  for (const std::vector<Action>& order : schedule.ranks) {
    int live = 0;
    int peak = 0;
    int freed = 0;  // by the first pass of a fused pair: both hold what they hold until both end
    for (const Action& action : order) {
      if (action.pass == Pass::kForward) peak = std::max(peak, ++live);
      if (action.pass == Pass::kBackward || action.pass == Pass::kWeightGradient) ++freed;
      if (!action.fused) live -= std::exchange(freed, 0);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace stagecraft
