// The passes of the simulated ranks.
//
// A pass is a task with a stage. Its parts are those of its label. Where shared links or its device stretch
// it, all parts are stretched by the same factor.
#pragma once

#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/engine/engine.hpp"
#include "sim/lower/category.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// Of any job, by any name; pass_of(label) knows those of this job.
[[nodiscard]] bool is_pass(const Program& program, TaskId task);
[[nodiscard]] Duration time_of(const Timeline& timeline, TaskId task);
// Parts of the task's time; they add up to it.
[[nodiscard]] std::vector<TaskPart> parts_of(const Program& program, const Timeline& timeline, TaskId task);

struct RankPasses {
  Duration work{}, first{Duration::max()}, last{};
  Breakdown by_category{};
};

// The passes of each simulated rank, in the order of ranks.
[[nodiscard]] std::vector<RankPasses> passes_by_rank(const Program& program, const Timeline& timeline);
// The rank with most work, the first of equals. requires one rank at least.
[[nodiscard]] std::size_t busiest_rank(const std::vector<RankPasses>& ranks);

// Share of the ranks' time up to `makespan` without a pass of theirs. `weights`, by copy of the pipeline: number
// of replicas that it stands for; empty: all equal.
//   requires  the ranks of one copy after those of another; a makespan above 0.
[[nodiscard]] double idle_share(std::span<const RankPasses> ranks, std::span<const int> weights,
                                Duration makespan);

}  // namespace stagecraft
