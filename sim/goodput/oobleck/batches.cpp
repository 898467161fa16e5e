#include "sim/goodput/oobleck/batches.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {

BatchShares share_micro_batches(int pipelines, int micro_batches,
                                const std::function<Duration(int, int)>& time) {
  SC_CHECK(pipelines >= 1 && micro_batches >= pipelines, "each pipeline takes a micro-batch");
  BatchShares out{.micro_batches = std::vector<int>(static_cast<std::size_t>(pipelines), 1)};
  // (finish time with one more micro-batch, pipeline); the least is taken.
  using Offer = std::pair<Duration, int>;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  for (int pipeline = 0; pipeline < pipelines; ++pipeline) offers.emplace(time(pipeline, 2), pipeline);
  for (int left = micro_batches - pipelines; left > 0; --left) {
    const int pipeline = offers.top().second;
    offers.pop();
    const int taken = ++out.micro_batches[static_cast<std::size_t>(pipeline)];
    offers.emplace(time(pipeline, taken + 1), pipeline);
  }
  for (int pipeline = 0; pipeline < pipelines; ++pipeline)
    out.makespan =
        std::max(out.makespan, time(pipeline, out.micro_batches[static_cast<std::size_t>(pipeline)]));
  return out;
}

BatchShares share_micro_batches(Templates& templates, std::span<const int> numbers, int micro_batches) {
  return share_micro_batches(static_cast<int>(numbers.size()), micro_batches, [&](int pipeline, int count) {
    return templates.time(numbers[static_cast<std::size_t>(pipeline)], count);
  });
}

}  // namespace stagecraft
