// Checks of a pipeline shape that every schedule shares.
//
// A shape comes from a user, so it may be empty, absurdly large, or name options that the schedule does not
// have. Options without effect are refused as well: a group given to 1F1B is a misunderstanding, not a
// default.
#pragma once

#include <optional>
#include <string_view>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The largest number of (stage, micro-batch) pairs of one iteration that we put in order. An order is data in
// memory, 12 bytes a pass: at this limit 600 MB with three passes a pair. 128 ranks of 8 chunks may run 16384
// micro-batches.
inline constexpr int kMaxStageMicroBatches = 1 << 24;

// nullopt when ranks, micro-batches and chunks are at least 1, the group is not negative, and the order fits
// in memory.
[[nodiscard]] std::optional<ScheduleProblem> refuse_shape(const PipelineShape& shape);

// Does what refuse_shape does, for a schedule with one chunk a rank and no micro-batch group; `schedule` is
// its name, and `chunked` the one that its user may have meant.
[[nodiscard]] std::optional<ScheduleProblem> refuse_interleaving(
    const PipelineShape& shape, std::string_view schedule, std::string_view chunked = "interleaved-1f1b");

// Does what refuse_shape does, for a schedule on a V: two chunks a rank, no group.
[[nodiscard]] std::optional<ScheduleProblem> refuse_other_than_two_chunks(const PipelineShape& shape,
                                                                          std::string_view schedule);

// One condition each. require a shape that refuse_shape accepts.
[[nodiscard]] std::optional<ScheduleProblem> refuse_group(const PipelineShape& shape,
                                                          std::string_view schedule);
// `plain` is the schedule for one chunk.
[[nodiscard]] std::optional<ScheduleProblem> refuse_single_chunk(const PipelineShape& shape,
                                                                 std::string_view schedule,
                                                                 std::string_view plain);
// `other` is a schedule that takes any number of ranks.
[[nodiscard]] std::optional<ScheduleProblem> refuse_odd_ranks(const PipelineShape& shape,
                                                              std::string_view schedule,
                                                              std::string_view other);

}  // namespace stagecraft
