// The key `network`: a mode, or a mapping with it.
//
//   network: flow
//   network: {mode: flow, background: [{from: node 3 gpu 0, to: node 4, rate: 20 GB/s}]}
//
// Other jobs and their places are read by load_jobs.hpp.
//
// A place is "node N" or "node N gpu G", counted from 0 as the cluster counts them.
#pragma once

#include <string>
#include <string_view>

#include "base/yaml.hpp"
#include "sim/plan/network_spec.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// `cluster` may be null, where it has a mistake as well; places are then not compared with it.
[[nodiscard]] NetworkSpec load_network(YamlMap& root, const ClusterSpec* cluster, Origins& origins);

// The word that says which keys of `network` count.
[[nodiscard]] NetworkMode load_mode(YamlMap& map, std::string_view key);

// "node 3 gpu 0"; nullopt when it is no place.
[[nodiscard]] std::optional<NodePlace> parse_place(std::string_view text);
[[nodiscard]] std::string to_text(const NodePlace& place);

}  // namespace stagecraft
