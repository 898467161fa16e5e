#include "sim/schedule/unrolled.hpp"

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

// Forwards of a rank that follow their backward in the order: [position].
std::vector<bool> forwards_ahead(const Schedule& schedule, const std::vector<Action>& order) {
  const auto m = static_cast<std::size_t>(schedule.shape.micro_batches);
  std::vector<bool> has_backward(static_cast<std::size_t>(schedule.stages()) * m, false);
  std::vector<bool> ahead(order.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t slot =
        static_cast<std::size_t>(order[i].stage) * m + static_cast<std::size_t>(order[i].micro_batch);
    if (order[i].pass == Pass::kForward) {
      ahead[i] = has_backward[slot];
    } else {
      has_backward[slot] = true;
    }
  }
  return ahead;
}

// New number of micro-batch `j` of `iteration`. In a bidirectional order the first half must remain the half
// that goes down.
int renumbered(const Schedule& schedule, int iterations, int iteration, int j) {
  const int m = schedule.shape.micro_batches;
  if (schedule.placement != Placement::kBidirectional) return iteration * m + j;
  const int half = m / 2;
  return j < half ? iteration * half + j : (iterations + iteration) * half + j - half;
}

}  // namespace

std::vector<std::vector<Action>> stretches(const Schedule& schedule, int rank, int iterations) {
  SC_CHECK(iterations >= 1, "at least one iteration");
  const std::vector<Action>& order = schedule.ranks[static_cast<std::size_t>(rank)];
  const std::vector<bool> ahead =
      schedule.flush ? std::vector<bool>(order.size(), false) : forwards_ahead(schedule, order);
  std::vector<std::vector<Action>> all;
  for (int iteration = schedule.flush ? 0 : -1; iteration < iterations; ++iteration) {
    std::vector<Action>& stretch = all.emplace_back();
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int belongs_to = iteration + (ahead[i] ? 1 : 0);
      if (belongs_to < 0 || belongs_to >= iterations) continue;
      stretch.push_back(order[i]);
      stretch.back().micro_batch = renumbered(schedule, iterations, belongs_to, order[i].micro_batch);
    }
  }
  return all;
}

Schedule unrolled(const Schedule& schedule, int iterations) {
  Schedule all = schedule;
  all.flush = true;
  all.shape.micro_batches *= iterations;
  SC_CHECK(!refuse_shape(all.shape), "the iterations are too many to hold");
  for (int rank = 0; rank < schedule.shape.ranks; ++rank) {
    std::vector<Action>& order = all.ranks[static_cast<std::size_t>(rank)];
    order.clear();
    for (const std::vector<Action>& stretch : stretches(schedule, rank, iterations))
      order.insert(order.end(), stretch.begin(), stretch.end());
  }
  return all;
}

}  // namespace stagecraft
