// `cluster.links`: exceptions to the rule, by the names of links.
//
//   links: [{name: "node 3 nic 1 -> leaf 0", bandwidth: 100 Gb/s}, {name: "node * nic 7 -> *", missing:
//   true}]
#pragma once

#include <vector>

#include "base/yaml.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// Reads `links` of `map`, the section of the cluster described by `spec` (whose own links are ignored).
// Reports names of no link, and links named twice. The reachability of GPUs is checked later. `spec` may be
// null when the rest of the section is wrong: names are then not resolved. Empty after a mistake.
[[nodiscard]] std::vector<LinkException> load_links(YamlMap& map, const ClusterSpec* spec, Origins& origins);

}  // namespace stagecraft
