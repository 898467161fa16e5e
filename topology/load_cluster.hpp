// Nodes and fabrics from YAML. Bandwidths and times need units; counts and shares are bare.
//
//   node     device, gpus, nics, nic_bandwidth and pcie are required; nvlink_latency as well where nvlink is
//            given.
//   fabric   kind is required; all else has the defaults of FabricSpec.
#pragma once

#include <optional>
#include <string_view>

#include "base/units.hpp"
#include "base/yaml.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// Read one mapping and finish it. Mistakes go to the diagnostics of `map`; the value returned after a mistake
// is harmless but meaningless.
[[nodiscard]] NodeSpec load_node(YamlMap& map);
[[nodiscard]] FabricSpec load_fabric(YamlMap& map);

// An hour at most, so that sums of millions of them stay within what is counted.
[[nodiscard]] Duration load_latency(YamlMap& map, std::string_view key,
                                    std::optional<Duration> fallback = Duration::zero());

}  // namespace stagecraft
