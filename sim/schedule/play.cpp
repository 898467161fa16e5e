#include "sim/schedule/play.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "sim/schedule/unrolled.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kNotYet = -1;
constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

// The ranks run in turn, each as far as possible. A pass that produces the input of a waiting rank wakes that
// rank. So each pass is visited once, and once more for each time its rank waited for it.
class Clockwork {
 public:
  Clockwork(const Schedule& schedule, const ScheduleCosts& costs, bool senders_wait)
      : schedule_(schedule),
        costs_(costs),
        senders_wait_(senders_wait),
        next_(schedule.ranks.size(), 0),
        clock_(schedule.ranks.size(), 0),
        waits_for_(schedule.ranks.size(), kNothing),
        arrival_(2 * pairs(schedule), kNotYet) {
    SC_CHECK(costs.stages.size() <= 1 || costs.stages.size() == static_cast<std::size_t>(schedule.stages()),
             "one cost for all stages or one each");
    result_.busy.assign(schedule.ranks.size(), 0);
    for (const std::vector<Action>& order : schedule.ranks) result_.ranks.emplace_back(order.size());
  }

  Play run() && {
    for (std::size_t rank = 0; rank < next_.size(); ++rank) runnable_.push_back(rank);
    while (!runnable_.empty()) {
      const std::size_t rank = runnable_.back();
      runnable_.pop_back();
      while (step(rank)) {
      }
    }
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      SC_CHECK(next_[rank] == schedule_.ranks[rank].size(), "a deadlock: ask check() first");
      const std::vector<PassTime>& times = result_.ranks[rank];
      if (times.empty()) continue;
      result_.makespan = std::max(result_.makespan, times.back().end);
      result_.span = std::max(result_.span, times.back().end - times.front().start);
    }
    return std::move(result_);
  }

 private:
  static std::size_t pairs(const Schedule& schedule) {
    return static_cast<std::size_t>(schedule.stages()) *
           static_cast<std::size_t>(schedule.shape.micro_batches);
  }
  // Index of the time at which a forward's output (or a backward's gradient) arrives at the next stage.
  [[nodiscard]] std::size_t slot(bool gradient, int stage, int micro_batch) const {
    const auto m = static_cast<std::size_t>(schedule_.shape.micro_batches);
    return 2 * (static_cast<std::size_t>(stage) * m + static_cast<std::size_t>(micro_batch)) +
           (gradient ? 1 : 0);
  }
  // The input of a pass from another stage. Inputs from its own stage precede it; check() refuses other
  // orders.
  [[nodiscard]] std::size_t input_of(const Action& action) const {
    if (action.pass == Pass::kForward)
      return action.stage == 0 ? kNothing : slot(false, action.stage - 1, action.micro_batch);
    if (gives_gradient(action.pass) && action.stage + 1 < schedule_.stages())
      return slot(true, action.stage + 1, action.micro_batch);
    return kNothing;
  }

  // Runs the next pass of the rank, or the next fused pair; false when it is finished or waits.
  bool step(std::size_t rank) {
    const std::vector<Action>& order = schedule_.ranks[rank];
    const std::size_t at = next_[rank];
    if (at == order.size()) return false;
    const std::size_t count = order[at].fused ? 2 : 1;
    std::int64_t start = clock_[rank];
    for (std::size_t i = at; i < at + count; ++i) {
      const std::size_t input = input_of(order[i]);
      if (input == kNothing) continue;
      if (arrival_[input] == kNotYet) {
        waits_for_[rank] = input;
        return false;
      }
      start = std::max(start, arrival_[input]);
    }
    const std::int64_t lasts =
        count == 2 ? length_of_pair(order[at], order[at + 1], costs_) : length_of(order[at], costs_);
    clock_[rank] = start + lasts;
    result_.busy[rank] += lasts;
    for (std::size_t i = at; i < at + count; ++i) {
      result_.ranks[rank][i] = {.start = start, .end = start + lasts};
      send(rank, order[i]);
    }
    next_[rank] = at + count;
    return true;
  }

  void send(std::size_t rank, const Action& action) {
    const bool gradient = gives_gradient(action.pass);
    if (!gradient && action.pass != Pass::kForward) return;
    const int to = action.stage + (gradient ? -1 : 1);
    if (to < 0 || to == schedule_.stages()) return;
    const auto receiver = static_cast<std::size_t>(schedule_.rank_of(to, action.micro_batch));
    const std::size_t output = slot(gradient, action.stage, action.micro_batch);
    const std::int64_t way = receiver == rank ? 0 : costs_.message;
    arrival_[output] = clock_[rank] + way;
    if (senders_wait_) clock_[rank] += way;
    if (waits_for_[receiver] == output) {
      waits_for_[receiver] = kNothing;
      runnable_.push_back(receiver);
    }
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  bool senders_wait_;
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> clock_;
  std::vector<std::size_t> waits_for_;  // slots
  std::vector<std::int64_t> arrival_;   // [slot]
  std::vector<std::size_t> runnable_;
  Play result_;
};

}  // namespace

std::int64_t Play::ideal() const {
  return busy.empty() ? 0 : std::ranges::max(busy);
}

double Play::bubble_over_ideal() const {
  const std::int64_t work = ideal();
  return work == 0 ? 0 : static_cast<double>(makespan - work) / static_cast<double>(work);
}

double Play::bubble_fraction() const {
  const double all = static_cast<double>(makespan) * static_cast<double>(busy.size());
  const auto work = std::accumulate(busy.begin(), busy.end(), std::int64_t{0});
  return all == 0 ? 0 : 1 - static_cast<double>(work) / all;
}

std::int64_t length_of(Pass pass, const StageCosts& stage) {
  switch (pass) {
    case Pass::kForward:
      return stage.forward;
    case Pass::kBackward:
      return stage.input_gradient + stage.weight_gradient;
    case Pass::kInputGradient:
      return stage.input_gradient;
    case Pass::kWeightGradient:
      return stage.weight_gradient;
    case Pass::kRecompute:
      return stage.recompute;
  }
  SC_CHECK(false, "a pass outside the enumeration");
  return 0;
}

std::int64_t length_of(const Action& action, const ScheduleCosts& costs) {
  return length_of(action.pass, costs.of(action.stage));
}

std::int64_t length_of_pair(const Action& first, const Action& second, const ScheduleCosts& costs) {
  if (costs.pair) return *costs.pair;
  const std::int64_t sum = length_of(first, costs) + length_of(second, costs);
  return costs.fused == 1 ? sum : std::llround(costs.fused * static_cast<double>(sum));
}

Play play(const Schedule& schedule, const ScheduleCosts& costs) {
  SC_CHECK(schedule.flush, "unroll an asynchronous order first");
  return Clockwork(schedule, costs, false).run();
}

Play play_waiting_senders(const Schedule& schedule, const ScheduleCosts& costs) {
  SC_CHECK(schedule.flush, "unroll an asynchronous order first");
  return Clockwork(schedule, costs, true).run();
}

std::int64_t period(const Schedule& schedule, const ScheduleCosts& costs) {
  return play(unrolled(schedule, 4), costs).makespan - play(unrolled(schedule, 3), costs).makespan;
}

}  // namespace stagecraft
