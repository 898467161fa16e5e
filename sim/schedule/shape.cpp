#include "sim/schedule/shape.hpp"

#include <cstdint>
#include <string>

#include "base/text.hpp"

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

std::optional<ScheduleProblem> refuse_interleaving(const PipelineShape& shape, std::string_view schedule,
                                                   std::string_view chunked) {
  if (auto problem = refuse_shape(shape)) return problem;
  const std::string name(schedule);
  const std::string other(chunked);
  if (shape.chunks > 1) {
    return ScheduleProblem{.message = std::to_string(shape.chunks) + " chunks a rank: " + name + " runs 1",
                           .hint = "use 1 chunk a rank, or " + other};
  }
  return refuse_group(shape, schedule);
}

std::optional<ScheduleProblem> refuse_other_than_two_chunks(const PipelineShape& shape,
                                                            std::string_view schedule) {
  if (auto problem = refuse_shape(shape)) return problem;
  if (auto problem = refuse_group(shape, schedule)) return problem;
  if (shape.chunks == 2) return std::nullopt;
  return ScheduleProblem{.message = counted(shape.chunks, "chunk") + " a rank: " + std::string(schedule) +
                                    " runs 2, down the ranks and back",
                         .hint = "2 chunks a rank would be legal"};
}

std::optional<ScheduleProblem> refuse_group(const PipelineShape& shape, std::string_view schedule) {
  if (shape.group == 0) return std::nullopt;
  return ScheduleProblem{.message = "a micro-batch group of " + std::to_string(shape.group) + ": " +
                                    std::string(schedule) + " has no groups to choose",
                         .hint = "leave the group out, or use interleaved-1f1b with 2 or more chunks a rank"};
}

std::optional<ScheduleProblem> refuse_single_chunk(const PipelineShape& shape, std::string_view schedule,
                                                   std::string_view plain) {
  if (shape.chunks > 1) return std::nullopt;
  return ScheduleProblem{.message = "1 chunk a rank: " + std::string(schedule) + " needs at least 2",
                         .hint = "use " + std::string(plain) + ", or 2 or more chunks a rank"};
}

std::optional<ScheduleProblem> refuse_odd_ranks(const PipelineShape& shape, std::string_view schedule,
                                                std::string_view other) {
  const int p = shape.ranks;
  if (p % 2 == 0) return std::nullopt;
  const std::string fewer = p > 1 ? std::to_string(p - 1) + " or " : "";
  return ScheduleProblem{.message = counted(p, "rank") + ": " + std::string(schedule) +
                                    " pairs them from both ends, so 2 must divide them",
                         .hint = fewer + std::to_string(p + 1) + " ranks would be legal, or " +
                                 std::string(other) + ", which takes any number"};
}

}  // namespace stagecraft
