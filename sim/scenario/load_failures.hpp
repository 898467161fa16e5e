// `failures:` of a scenario: processes, policy, checkpoint, repair, horizon and repeats.
//
// Missing values come from scenarios/failures/defaults.yaml. A key that the chosen process or policy does not
// read is an error that names its owner.
#pragma once

#include <optional>
#include <vector>

#include "base/yaml.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// Other inputs of the section, and the record of its defaults.
struct FailuresContext {
  const ClusterSpec* cluster;  // null: none, or a wrong one
  const PresetPlaces& places;
  Origins& origins;
  std::vector<AssumedInput>& assumed;
};

// nullopt without the section. Mistakes go to the diagnostics of `root`; the value returned then is harmless.
[[nodiscard]] std::optional<FailureSpec> load_failures(YamlMap& root, const FailuresContext& context);

}  // namespace stagecraft
