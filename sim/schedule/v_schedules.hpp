// Schedules in a V that trade bubble for memory: V-Half, V-Min and 1F1B-V.
//
// Each is a building block, one micro-batch's passes in time slots, repeated every six slots; what stands
// in the block sets how long an activation lives and so the peak. The ends of the order, where the repetition
// leaves holes, are then pulled together without raising the peak.
//
//   placement  V: rank r holds stages r and 2p-1-r; two chunks. V-Half, V-Min: backward split; 1F1B-V: whole.
//   peak       V-Half 2*((p+2) div 2) chunks, V-Min 2*((p+4) div 3), 1F1B-V 2*((2p) div 3 + 1): 1F1B holds 2p
//              in the same unit.
//   bubble     F=I=W=1, m >= 2p: V-Half 1 for p=2, 3p-7 for even p > 2, 3p-4 for odd p; V-Min 4p-5, 4p-7
//              where 3 divides p. The blocks are made for equal times; no cost is looked at.
//   source     Qi et al., "Pipeline Parallelism with Controllable Memory" (arXiv 2405.15362), sections 3
//              and 4.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

[[nodiscard]] std::optional<ScheduleProblem> v_half_constraint(const PipelineShape& shape);
[[nodiscard]] std::optional<ScheduleProblem> v_min_constraint(const PipelineShape& shape);
[[nodiscard]] std::optional<ScheduleProblem> one_f_one_b_v_constraint(const PipelineShape& shape);
// makespan - ideal at F = I = W; nullopt elsewhere. Checked.
[[nodiscard]] std::optional<std::int64_t> v_half_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<std::int64_t> v_min_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] Schedule v_half(const PipelineShape& shape, const ScheduleCosts& costs);
[[nodiscard]] Schedule v_min(const PipelineShape& shape, const ScheduleCosts& costs);
[[nodiscard]] Schedule one_f_one_b_v(const PipelineShape& shape, const ScheduleCosts& costs);

}  // namespace stagecraft
