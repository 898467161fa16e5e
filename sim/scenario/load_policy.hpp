// `failures.policy` and `failures.checkpoint`.
#pragma once

#include "base/yaml.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/scenario/failure_defaults.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// A name, or {name, and the keys that this policy reads}. `failures` is the mapping that holds the key.
[[nodiscard]] PolicySpec load_policy(YamlMap& failures, FailureDefaults& defaults);

// The default storage grows with the `cluster`; null: none.
[[nodiscard]] CheckpointSpec load_checkpoint(YamlMap& failures, FailureDefaults& defaults,
                                             const ClusterSpec* cluster);

}  // namespace stagecraft
