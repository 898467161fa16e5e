// Oracle: evaluate() and the engine, which share no code, give the same lengths on random orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/lower/lower.hpp"
#include "sim/schedule/evaluate.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/schedule/random_pick.hpp"

namespace stagecraft {
namespace {

// A valid order: whatever could run next, chosen by lot, until all has run. Whole backwards, or split ones.
class RandomOrder {
 public:
  RandomOrder(const PipelineShape& shape, Placement placement, Random& random)
      : random_(random), split_(pick(random, 0, 1) == 1) {
    schedule_ = {.name = "random", .shape = shape, .placement = placement, .ranks = {}};
    schedule_.ranks.resize(static_cast<std::size_t>(shape.ranks));
    progress_.resize(static_cast<std::size_t>(schedule_.stages() * shape.micro_batches), 0);
  }

  Schedule make() && {
    for (std::vector<Action> ready = all_ready(); !ready.empty(); ready = all_ready()) {
      const Action action =
          ready[static_cast<std::size_t>(pick(random_, 0, static_cast<int>(ready.size()) - 1))];
      ++progress(action.stage, action.micro_batch);
      schedule_.ranks[static_cast<std::size_t>(schedule_.rank_of(action.stage, action.micro_batch))]
          .push_back(action);
    }
    return schedule_;
  }

 private:
  // How many passes of a pair have run: F, then I or B, then W.
  int& progress(int stage, int micro_batch) {
    return progress_[static_cast<std::size_t>(stage * schedule_.shape.micro_batches + micro_batch)];
  }

  std::vector<Action> all_ready() {
    std::vector<Action> ready;
    const int last = schedule_.stages() - 1;
    for (int stage = 0; stage <= last; ++stage) {
      for (int j = 0; j < schedule_.shape.micro_batches; ++j) {
        const int done = progress(stage, j);
        if (done == 0 && (stage == 0 || progress(stage - 1, j) > 0)) {
          ready.push_back({.pass = Pass::kForward, .stage = stage, .micro_batch = j});
        } else if (done == 1 && (stage == last || progress(stage + 1, j) > 1)) {
          ready.push_back(
              {.pass = split_ ? Pass::kInputGradient : Pass::kBackward, .stage = stage, .micro_batch = j});
        } else if (done == 2 && split_) {
          ready.push_back({.pass = Pass::kWeightGradient, .stage = stage, .micro_batch = j});
        }
      }
    }
    return ready;
  }

  Random& random_;
  bool split_;
  Schedule schedule_;
  std::vector<int> progress_;  // [stage][micro-batch]
};

IterationPrices prices_of(const Schedule& schedule, const ScheduleCosts& costs) {
  IterationPrices prices;
  prices.ranks.resize(schedule.ranks.size());
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    const StageCosts cost = costs.of(stage);
    StagePrice price;
    price.forward.add(Category::kForward, Duration(cost.forward), Provenance::kAssumed);
    price.input_gradient.add(Category::kBackward, Duration(cost.input_gradient), Provenance::kAssumed);
    price.weight_gradient.add(Category::kBackward, Duration(cost.weight_gradient), Provenance::kAssumed);
    prices.stages.push_back(price);
    if (stage == 0) continue;
    EdgePrice edge;
    if (schedule.rank_of(stage, 0) != schedule.rank_of(stage - 1, 0)) {
      edge.forward.add(Category::kPipelineComm, Duration(costs.message), Provenance::kAssumed);
    }
    edge.backward = edge.forward;
    prices.edges.push_back(edge);
  }
  return prices;
}

// The longest that any rank's compute stream takes from its first start to its last end.
Duration span_of(const Program& program, const Timeline& timeline, const Schedule& schedule) {
  Duration longest{};
  for (int rank = 0; rank < schedule.shape.ranks; ++rank) {
    Duration first = Duration::max();
    Duration last{};
    for (std::uint32_t i = 0; i < timeline.start.size(); ++i) {
      const TaskId task(i);
      const Resource& resource = program.resources[program.resource_of(task)];
      if (resource.rank != rank || resource.name != "compute") continue;
      first = std::min(first, timeline.start[task]);
      last = std::max(last, timeline.end[task]);
    }
    longest = std::max(longest, last - first);
  }
  return longest;
}

TEST(EvaluateAndEngine, AgreeOnRandomOrders) {
  Random random(20241121);
  for (int i = 0; i < 300; ++i) {
    const bool v = pick(random, 0, 1) == 1;
    const PipelineShape shape{.ranks = pick(random, 1, 5),
                              .micro_batches = pick(random, 1, 7),
                              .chunks = v ? 2 : pick(random, 1, 3)};
    const Schedule schedule = RandomOrder(shape, v ? Placement::kV : Placement::kLoop, random).make();
    ScheduleCosts costs{.message = pick(random, 0, 5)};
    for (int stage = 0; stage < schedule.stages(); ++stage) {
      costs.stages.push_back({pick(random, 1, 9), pick(random, 1, 9), pick(random, 1, 9)});
    }
    SCOPED_TRACE(testing::Message() << "order " << i << ": p=" << shape.ranks << " m=" << shape.micro_batches
                                    << " v=" << shape.chunks);
    ASSERT_EQ(check(schedule), std::vector<ScheduleProblem>{});
    const Program program = lower(schedule, prices_of(schedule, costs), {});
    const Timeline timeline = run(program);
    const Evaluation evaluation = evaluate(schedule, costs);
    ASSERT_EQ(Duration(evaluation.makespan), timeline.makespan);
    ASSERT_EQ(Duration(evaluation.span), span_of(program, timeline, schedule));
  }
}

}  // namespace
}  // namespace stagecraft
