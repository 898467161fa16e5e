#include "sim/schedule/hanayo.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "sim/schedule/play.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

struct Rule {
  bool backward_first = true;
  int cap = 1;  // micro-batches in flight
};

// Runs the passes in time, each rank taking the best of those whose input has arrived.
class ListScheduler {
 public:
  ListScheduler(const PipelineShape& shape, const ScheduleCosts& costs, Rule rule)
      : costs_(costs),
        rule_(rule),
        waiting_(static_cast<std::size_t>(shape.ranks)),
        busy_(static_cast<std::size_t>(shape.ranks), false) {
    schedule_ = {.name = {},
                 .shape = shape,
                 .placement = Placement::kWave,
                 .ranks = std::vector<std::vector<Action>>(static_cast<std::size_t>(shape.ranks))};
    const auto passes =
        2 * static_cast<std::size_t>(shape.micro_batches) * static_cast<std::size_t>(shape.chunks);
    for (std::vector<Action>& order : schedule_.ranks) order.reserve(passes);
  }

  Schedule run() && {
    admit();
    start_all(0);
    while (!events_.empty()) {
      const std::int64_t now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        settle(event);
      }
      admit();
      start_all(now);
    }
    return std::move(schedule_);
  }

 private:
  // Smaller is taken first: rule, then depth, then age.
  using Rank = std::tuple<int, int, int>;

  struct Event {
    std::int64_t time = 0;
    bool arrival = false;  // of the input of `action`; else its end
    Action action;
    bool operator>(const Event& other) const {
      return std::tie(time, arrival, action) > std::tie(other.time, other.arrival, other.action);
    }
  };

  [[nodiscard]] std::size_t home(const Action& action) const {
    return static_cast<std::size_t>(schedule_.rank_of(action.stage, action.micro_batch));
  }
  [[nodiscard]] Rank rank_of(const Action& action) const {
    const bool forward = action.pass == Pass::kForward;
    return {forward == rule_.backward_first ? 1 : 0, forward ? -action.stage : action.stage,
            action.micro_batch};
  }

  void admit() {
    const int m = schedule_.shape.micro_batches;
    while (admitted_ < m && admitted_ - finished_ < rule_.cap)
      offer({.pass = Pass::kForward, .stage = 0, .micro_batch = admitted_++});
  }

  void offer(const Action& action) { waiting_[home(action)].push({rank_of(action), action}); }

  void start_all(std::int64_t now) {
    for (std::size_t r = 0; r < waiting_.size(); ++r) {
      if (busy_[r] || waiting_[r].empty()) continue;
      const Action action = waiting_[r].top().second;
      waiting_[r].pop();
      busy_[r] = true;
      schedule_.ranks[r].push_back(action);
      const StageCosts cost = costs_.of(action.stage);
      const std::int64_t lasts =
          action.pass == Pass::kForward ? cost.forward : cost.input_gradient + cost.weight_gradient;
      events_.push({.time = now + lasts, .arrival = false, .action = action});
    }
  }

  void settle(const Event& event) {
    if (event.arrival) {
      offer(event.action);
      return;
    }
    const Action& done = event.action;
    busy_[home(done)] = false;
    if (done.pass == Pass::kBackward && done.stage == 0) {
      ++finished_;
      return;
    }
    Action next = done;
    if (done.pass == Pass::kForward && done.stage + 1 == schedule_.stages()) {
      next.pass = Pass::kBackward;
    } else {
      next.stage += done.pass == Pass::kForward ? 1 : -1;
    }
    const std::int64_t way = home(next) == home(done) ? 0 : costs_.message;
    if (way == 0) {
      offer(next);
    } else {
      events_.push({.time = event.time + way, .arrival = true, .action = next});
    }
  }

  const ScheduleCosts& costs_;
  Rule rule_;
  Schedule schedule_;
  using Waiting = std::pair<Rank, Action>;
  std::vector<std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>> waiting_;  // [rank]
  std::vector<bool> busy_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int admitted_ = 0;
  int finished_ = 0;
};

// From p to 3p in about seven steps, none above the micro-batches; from 1 where memory is limited.
std::vector<int> caps_of(const PipelineShape& shape, const ScheduleCosts& costs) {
  const int least = costs.memory_limit > 0 ? 1 : shape.ranks;
  const int most = 3 * shape.ranks;
  const int step = std::max(1, (most - least) / 7);
  std::vector<int> caps;
  for (int cap = least; cap <= most; cap += step) {
    caps.push_back(std::min(cap, shape.micro_batches));
    if (cap >= shape.micro_batches) break;
  }
  return caps;
}

// The shortest order at the costs, then the one that holds least; of orders over the memory limit the one that
// passes it least.
class Best {
 public:
  explicit Best(const ScheduleCosts& costs) : costs_(costs) {}

  void try_orders_for(const PipelineShape& shape, const ScheduleCosts& made_for) {
    for (const int cap : caps_of(shape, made_for))
      for (const bool backward_first : {true, false})
        offer(ListScheduler(shape, made_for, {.backward_first = backward_first, .cap = cap}).run());
  }

  Schedule schedule() && { return *std::move(best_); }

 private:
  void offer(Schedule schedule) {
    const int peak = std::ranges::max(peak_in_flight(schedule));
    const bool over = costs_.memory_limit > 0 && peak > costs_.memory_limit;
    const std::tuple is(over, over ? peak : play(schedule, costs_).makespan, peak);
    if (best_ && is >= best_is_) return;
    best_is_ = is;
    best_ = std::move(schedule);
  }

  const ScheduleCosts& costs_;
  std::optional<Schedule> best_;
  std::tuple<bool, std::int64_t, int> best_is_;
};

}  // namespace

std::optional<ScheduleProblem> hanayo_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_shape(shape)) return problem;
  if (auto problem = refuse_group(shape, "hanayo")) return problem;
  if (shape.chunks % 2 == 0) return std::nullopt;
  const std::string fewer = shape.chunks > 1 ? std::to_string(shape.chunks - 1) + " or " : "";
  return ScheduleProblem{
      .message = std::to_string(shape.chunks) +
                 " chunks a rank: a wave of hanayo goes down and back, so 2 must divide them",
      .hint = fewer + std::to_string(shape.chunks + 1) + " chunks a rank would be legal"};
}

Schedule hanayo(const PipelineShape& shape, const ScheduleCosts& costs) {
  SC_CHECK(!hanayo_constraint(shape), "ask hanayo_constraint first");
  Best best(costs);
  best.try_orders_for(shape, costs);
  const ScheduleCosts alike{.memory_limit = costs.memory_limit};
  // Costs may mislead greedy rules, so equal costs are tried too.
  if (!(costs == alike)) best.try_orders_for(shape, alike);
  return std::move(best).schedule();
}

}  // namespace stagecraft
