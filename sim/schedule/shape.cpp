#include "sim/schedule/shape.hpp"

#include <cstdint>
#include <string>

namespace stagecraft {
namespace {

std::optional<ScheduleProblem> refuse_below(int number, int least, const std::string& what) {
  if (number >= least) return std::nullopt;
  return ScheduleProblem{
      .message = std::to_string(number) + " " + what + ": at least " + std::to_string(least) + " is needed",
      .hint = "give " + std::to_string(least) + " or more"};
}

}  // namespace

std::optional<ScheduleProblem> refuse_shape(const PipelineShape& shape) {
  if (auto problem = refuse_below(shape.ranks, 1, "ranks")) return problem;
  if (auto problem = refuse_below(shape.micro_batches, 1, "micro-batches")) return problem;
  if (auto problem = refuse_below(shape.chunks, 1, "chunks a rank")) return problem;
  if (auto problem = refuse_below(shape.group, 0, "micro-batches a group")) return problem;
  const std::int64_t stages = std::int64_t{shape.ranks} * shape.chunks;
  if (stages > kMaxStageMicroBatches || stages * shape.micro_batches > kMaxStageMicroBatches) {
    return ScheduleProblem{.message = std::to_string(stages) + " stages times " +
                                      std::to_string(shape.micro_batches) +
                                      " micro-batches is more than the " +
                                      std::to_string(kMaxStageMicroBatches) + " that an order may hold",
                           .hint = "give fewer micro-batches, ranks or chunks"};
  }
  return std::nullopt;
}

std::optional<ScheduleProblem> refuse_interleaving(const PipelineShape& shape, std::string_view schedule) {
  if (auto problem = refuse_shape(shape)) return problem;
  const std::string name(schedule);
  if (shape.chunks > 1) {
    return ScheduleProblem{.message = std::to_string(shape.chunks) + " chunks a rank: " + name + " runs 1",
                           .hint = "use interleaved-1f1b, or 1 chunk a rank"};
  }
  if (shape.group > 0) {
    return ScheduleProblem{
        .message = "a micro-batch group of " + std::to_string(shape.group) + ": " + name + " has no groups",
        .hint = "leave the group out, or use interleaved-1f1b with 2 or more chunks a rank"};
  }
  return std::nullopt;
}

}  // namespace stagecraft
