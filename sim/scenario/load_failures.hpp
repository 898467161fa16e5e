// `failures:` of a scenario: processes, policy, checkpoint, repair, horizon and repeats.
//
// What is absent comes from scenarios/failures/defaults.yaml. A key that the chosen process or policy does
// not read is an error that says whose it is.
#pragma once

#include <optional>
#include <vector>

#include "base/yaml.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// What the section is read beside, and where its defaults are written down.
struct FailuresContext {
  const ClusterSpec* cluster;  // null: none, or a wrong one
  const PresetPlaces& places;
  Origins& origins;
  std::vector<AssumedInput>& assumed;
};

// nullopt without the section. Mistakes go to the diagnostics of `root`; what is returned then is harmless.
[[nodiscard]] std::optional<FailureSpec> load_failures(YamlMap& root, const FailuresContext& context);

}  // namespace stagecraft
