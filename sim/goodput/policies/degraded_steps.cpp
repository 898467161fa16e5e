#include "sim/goodput/policies/degraded_steps.hpp"

#include <algorithm>
#include <numeric>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {
namespace {

std::int64_t micro_batches_of(const RecycleShape& shape, int dead) {
  SC_CHECK(dead >= 0 && dead < shape.pipelines, "a stage has a live worker");
  return ceil_div(shape.micro_batches * shape.pipelines, shape.pipelines - dead);
}

Duration lower_bound(const RecycleShape& shape, std::span<const int> dead) {
  Duration bound{}, ramp{};
  for (std::size_t s = 0; s < shape.stage_times.size(); ++s) {
    bound = std::max(bound, micro_batches_of(shape, dead[s]) * shape.stage_times[s] + ramp);
    ramp += shape.stage_times[s];
  }
  return bound;
}

Duration unoptimised(const RecycleShape& shape, std::span<const int> dead) {
  const std::int64_t most = micro_batches_of(shape, *std::max_element(dead.begin(), dead.end()));
  const std::int64_t stages = static_cast<std::int64_t>(shape.stage_times.size());
  return (most + stages - 1) * *std::max_element(shape.stage_times.begin(), shape.stage_times.end());
}

}  // namespace

Duration pipeline_time(std::span<const Duration> stage_times, std::int64_t micro_batches) {
  SC_CHECK(!stage_times.empty() && micro_batches >= 1, "a pipeline has a stage and a micro-batch");
  const Duration once = std::accumulate(stage_times.begin(), stage_times.end(), Duration{});
  return once + (micro_batches - 1) * *std::max_element(stage_times.begin(), stage_times.end());
}

std::vector<Duration> redundant_stage_times(std::span<const StageWork> stages) {
  Duration slowest{};
  for (const StageWork& stage : stages) slowest = std::max(slowest, stage.whole());
  std::vector<Duration> times;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Duration bubble = slowest - stages[s].whole();
    const Duration shadowed = stages.size() == 1 ? Duration{} : stages[(s + 1) % stages.size()].forward;
    times.push_back(stages[s].whole() + std::max(Duration{}, shadowed - bubble));
  }
  return times;
}

Duration recycle_iteration(const RecycleShape& shape, std::span<const int> dead, RecycleForm form) {
  SC_CHECK(!shape.stage_times.empty() && dead.size() == shape.stage_times.size(),
           "the dead are counted by stage");
  const auto value = form == RecycleForm::kLowerBound ? lower_bound : unoptimised;
  const std::vector<int> nobody(dead.size(), 0);
  return shape.fault_free + value(shape, dead) - value(shape, nobody);
}

}  // namespace stagecraft
