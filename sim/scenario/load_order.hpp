// `schedule: {file: schedule.csv}`: a custom order of passes, in PyTorch's form.
//
//   errors  the file is not there; what parse_csv() finds, each at its line; an order that draws but does not
//           simulate: stages not on a loop, fused pairs, recompute passes.
#pragma once

#include <optional>

#include "base/yaml.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// nullopt where the key is not given, or after a report. A path is relative to the scenario.
[[nodiscard]] std::optional<PipelineOrder> load_order(YamlMap& root, const PresetPlaces& places);

}  // namespace stagecraft
