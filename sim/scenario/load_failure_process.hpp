// One entry of `failures.process`: its law by `kind`, and its causes.
#pragma once

#include "base/yaml.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/scenario/failure_defaults.hpp"
#include "sim/scenario/preset.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

struct ProcessContext {
  FailureDefaults& defaults;
  const ClusterSpec* cluster;
  const PresetPlaces& places;
  Origins& origins;
};

// Nodes of the cluster; 1 without one.
[[nodiscard]] int nodes_of(const ClusterSpec* cluster);

[[nodiscard]] FailureProcess load_failure_process(YamlMap& map, const ProcessContext& context);

// `repair: empirical | none | 24 h`, or {kind, time, file}. The default when the key is absent.
[[nodiscard]] RepairSpec load_repair(YamlMap& map, const char* key, const ProcessContext& context);

}  // namespace stagecraft
