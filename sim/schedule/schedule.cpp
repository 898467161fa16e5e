#include "sim/schedule/schedule.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "sim/schedule/unrolled.hpp"

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

Schedule generate(const ScheduleKind& kind, const PipelineShape& shape, const ScheduleCosts& costs) {
  SC_CHECK(kind.constraint != nullptr && kind.generate != nullptr, "a row of schedule_kinds() is incomplete");
  if (const auto problem = kind.constraint(shape)) SC_CHECK(false, problem->message);
  Schedule schedule = kind.generate(shape, costs);
  SC_CHECK(schedule.placement == kind.placement, "the row and its generator disagree about the placement");
  SC_CHECK(schedule.flush == kind.flush, "the row and its generator disagree about the flush");
  schedule.name = std::string(kind.name);
  return schedule;
}

namespace {

// Stages and micro-batches of a rank that are recomputed.
std::set<std::pair<int, int>> recomputed(const std::vector<Action>& order) {
  std::set<std::pair<int, int>> pairs;
  for (const Action& action : order) {
    if (action.pass == Pass::kRecompute) pairs.insert({action.stage, action.micro_batch});
  }
  return pairs;
}

}  // namespace

std::vector<int> in_flight(const std::vector<Action>& order, Held held) {
  const std::set<std::pair<int, int>> again = recomputed(order);
  const Pass half = held == Held::kActivations ? Pass::kWeightGradient : Pass::kInputGradient;
  std::vector<int> while_running;
  while_running.reserve(order.size());
  int live = 0;
  int freed = 0;  // by the first pass of a fused pair: both hold what they hold until both end
  for (const Action& action : order) {
    const bool makes_input = action.pass == Pass::kForward;
    const bool makes_activations = action.pass == Pass::kRecompute ||
                                   (makes_input && !again.contains({action.stage, action.micro_batch}));
    if (held == Held::kInputs ? makes_input : makes_activations) ++live;
    while_running.push_back(live);
    if (action.pass == Pass::kBackward || action.pass == half) ++freed;
    if (!action.fused) live -= std::exchange(freed, 0);
  }
  return while_running;
}

std::vector<int> peak_in_flight(const Schedule& schedule, Held held) {
  if (!schedule.flush) return peak_in_flight(unrolled(schedule, 2), held);
  std::vector<int> peaks;
  peaks.reserve(schedule.ranks.size());
  for (const std::vector<Action>& order : schedule.ranks) {
    const std::vector<int> live = in_flight(order, held);
    peaks.push_back(live.empty() ? 0 : std::ranges::max(live));
  }
  return peaks;
}

}  // namespace stagecraft
