// The sections of a scenario that say how to train: parallelism, schedule, training, overlap, options
// and offload.
#pragma once

#include <optional>

#include "base/yaml.hpp"
#include "sim/plan/specs.hpp"

namespace stagecraft {

// Each reads one section of the root. Mistakes go to the diagnostics of `root`; the value returned then is
// harmless.
[[nodiscard]] ParallelSpec load_parallelism(YamlMap& root);
[[nodiscard]] ScheduleSpec load_schedule(YamlMap& root);
[[nodiscard]] TrainingSpec load_training(YamlMap& root);  // sequence_length 0 where it was not given
[[nodiscard]] OverlapSpec load_overlap(YamlMap& root);
[[nodiscard]] OptionsSpec load_options(YamlMap& root);
[[nodiscard]] OffloadSpec load_offload(YamlMap& root);

// Operations under `key`, a list of words: `unfused`, which run eager although element-wise kernels are fused, or
// `fused`, which are one kernel in any case.
[[nodiscard]] LateFusions load_late_fusions(YamlMap& map, const char* key);

// Modules of selective recompute, a list of words.
[[nodiscard]] RecomputeModules load_recompute_modules(YamlMap& map, const char* key);

// Chunks per rank of a schedule that goes by its name, where `parallelism` does not say them.
[[nodiscard]] std::optional<int> unsaid_chunks(YamlMap& root, const ScheduleSpec& schedule);

// Checks the schedule against the degrees.
void check_schedule(YamlMap& root, const ScheduleSpec& schedule, const ParallelSpec& parallelism);

}  // namespace stagecraft
