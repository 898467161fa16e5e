// `failures.policy` and `failures.checkpoint`.
#pragma once

#include "base/yaml.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/scenario/failure_defaults.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// A name, or a mapping with the name and the keys of this policy. `failures` is the mapping that holds the
// key. `nodes_are_said`: a process defines the nodes, so lost ones are not replaced.
[[nodiscard]] PolicySpec load_policy(YamlMap& failures, FailureDefaults& defaults, bool nodes_are_said);

// The default storage grows with the `cluster`; null: none.
[[nodiscard]] CheckpointSpec load_checkpoint(YamlMap& failures, FailureDefaults& defaults,
                                             const ClusterSpec* cluster);

}  // namespace stagecraft
