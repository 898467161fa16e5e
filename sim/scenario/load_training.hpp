// The sections of a scenario that say how to train: parallelism, schedule, training, overlap, options
// and offload.
#pragma once

#include "base/yaml.hpp"
#include "sim/plan/specs.hpp"

namespace stagecraft {

// Each reads one section of the root; mistakes go to the diagnostics of `root`, and what is returned then is
// harmless.
[[nodiscard]] ParallelSpec load_parallelism(YamlMap& root);
[[nodiscard]] ScheduleSpec load_schedule(YamlMap& root);
[[nodiscard]] TrainingSpec load_training(YamlMap& root);  // sequence_length 0 where it was not given
[[nodiscard]] OverlapSpec load_overlap(YamlMap& root);
[[nodiscard]] OptionsSpec load_options(YamlMap& root);
[[nodiscard]] OffloadSpec load_offload(YamlMap& root);

// Chunks a rank: as given, or the schedule's own where nobody says.
[[nodiscard]] int default_chunks(YamlMap& root, const ScheduleSpec& schedule, int given);

// What holds between the schedule and the degrees.
void check_schedule(YamlMap& root, const ScheduleSpec& schedule, const ParallelSpec& parallelism);

}  // namespace stagecraft
