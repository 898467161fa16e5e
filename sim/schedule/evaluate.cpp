// evaluate(): the ranks are played in turn, each as far as it gets; who makes what another rank waits for
// wakes that rank. So each pass is looked at once, and once more for each time its rank waited for it.
#include "sim/schedule/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.hpp"
#include "sim/schedule/play.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kNotYet = -1;
constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

class Replay {
 public:
  Replay(const Schedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        micro_batches_(static_cast<std::size_t>(schedule.shape.micro_batches)) {
    const auto stages = static_cast<std::size_t>(schedule.stages());
    SC_CHECK(costs.stages.size() <= 1 || costs.stages.size() == stages,
             "one cost for all stages or one each");
    made_.assign(2 * stages * micro_batches_, kNotYet);
    ranks_.resize(schedule.ranks.size());
    for (std::size_t stage = 0; stage < stages; ++stage) stages_.push_back(costs.of(static_cast<int>(stage)));
  }

  Evaluation play() && {
    std::vector<std::size_t> runnable(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) runnable[rank] = ranks_.size() - 1 - rank;
    while (!runnable.empty()) {
      const std::size_t rank = runnable.back();
      runnable.pop_back();
      advance(rank, runnable);
    }
    return lengths();
  }

 private:
  struct Rank {
    std::size_t next = 0;              // position of the first pass not run
    std::size_t waits_for = kNothing;  // in made_
    std::int64_t first_start = kNotYet;
    std::int64_t end = 0;
    std::int64_t busy = 0;
  };

  // Where the end of a forward stands in made_; that of the backward it belongs to stands next to it.
  [[nodiscard]] std::size_t forward_of(int stage, int micro_batch) const {
    return 2 * (static_cast<std::size_t>(stage) * micro_batches_ + static_cast<std::size_t>(micro_batch));
  }

  // What a pass needs from outside of its rank's order: a place in made_ and the stage that fills it.
  struct Need {
    std::size_t place = kNothing;
    int stage = 0;
  };
  [[nodiscard]] Need need_of(const Action& action) const {
    if (action.pass == Pass::kForward && action.stage > 0) {
      return {.place = forward_of(action.stage - 1, action.micro_batch), .stage = action.stage - 1};
    }
    const bool backward = action.pass == Pass::kBackward || action.pass == Pass::kInputGradient;
    if (backward && action.stage + 1 < schedule_.stages()) {
      return {.place = forward_of(action.stage + 1, action.micro_batch) + 1, .stage = action.stage + 1};
    }
    return {};
  }

  [[nodiscard]] std::int64_t time_of(const Action& action) const {
    return length_of(action.pass, stages_[static_cast<std::size_t>(action.stage)]);
  }

  // When what `action` needs is there; kNotYet if it is not made, and then the rank is set to wait for it.
  std::int64_t arrival(std::size_t rank, const Action& action) {
    const Need need = need_of(action);
    if (need.place == kNothing) return 0;
    const std::int64_t end = made_[need.place];
    if (end == kNotYet) {
      ranks_[rank].waits_for = need.place;
      return kNotYet;
    }
    const bool crosses = schedule_.rank_of(need.stage, action.micro_batch) != static_cast<int>(rank);
    return end + (crosses ? costs_.message : 0);
  }

  void advance(std::size_t rank, std::vector<std::size_t>& runnable) {
    const std::vector<Action>& order = schedule_.ranks[rank];
    Rank& state = ranks_[rank];
    state.waits_for = kNothing;
    while (state.next < order.size()) {
      const Action& first = order[state.next];
      const bool pair = first.fused && state.next + 1 < order.size();
      std::int64_t start = arrival(rank, first);
      std::int64_t time = time_of(first);
      if (start != kNotYet && pair) {
        const Action& second = order[state.next + 1];
        const std::int64_t other = arrival(rank, second);
        start = other == kNotYet ? kNotYet : std::max(start, other);
        time = std::llround(costs_.fused * static_cast<double>(time + time_of(second)));
      }
      if (start == kNotYet) return;
      start = std::max(start, state.end);
      if (state.first_start == kNotYet) state.first_start = start;
      state.end = start + time;
      state.busy += time;
      state.next += pair ? 2 : 1;
      publish(first, state.end, runnable);
      if (pair) publish(order[state.next - 1], state.end, runnable);
    }
  }

  // Notes what a pass made, and wakes the rank that stands still for it.
  void publish(const Action& action, std::int64_t end, std::vector<std::size_t>& runnable) {
    const bool forward = action.pass == Pass::kForward;
    if (!forward && action.pass != Pass::kBackward && action.pass != Pass::kInputGradient) return;
    const std::size_t place = forward_of(action.stage, action.micro_batch) + (forward ? 0 : 1);
    made_[place] = end;
    const int user = action.stage + (forward ? 1 : -1);
    if (user < 0 || user >= schedule_.stages()) return;
    const auto rank = static_cast<std::size_t>(schedule_.rank_of(user, action.micro_batch));
    if (ranks_[rank].waits_for == place) runnable.push_back(rank);
  }

  [[nodiscard]] Evaluation lengths() const {
    Evaluation result;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Rank& state = ranks_[rank];
      SC_CHECK(state.next == schedule_.ranks[rank].size(), "a deadlock: ask check() first");
      result.makespan = std::max(result.makespan, state.end);
      if (state.first_start != kNotYet) result.span = std::max(result.span, state.end - state.first_start);
      result.busy.push_back(state.busy);
    }
    result.peak_in_flight = peak_in_flight(schedule_);
    return result;
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  std::size_t micro_batches_;
  std::vector<StageCosts> stages_;  // [global stage]
  std::vector<std::int64_t> made_;  // [stage][micro-batch][forward, backward] -> its end
  std::vector<Rank> ranks_;
};

}  // namespace

Evaluation evaluate(const Schedule& schedule, const ScheduleCosts& costs) {
  return Replay(schedule, costs).play();
}

}  // namespace stagecraft
