// `network.placement` and `network.jobs`: which nodes of the cluster the job has, and who runs on the others.
//
//   network:
//     mode: flow
//     placement: {nodes: 0-3}
//     jobs:
//       - {scenario: other.yaml, nodes: [4-6, 9], start: 100 ms, name: the other one}
//
// Nodes are numbered from 0 as in `cluster.nodes`, and take ranks in the order of the list. Without
// `placement` the job has the nodes that no other job has. Another job brings its model, its training and its
// profile, and the number and kinds of nodes of its own `cluster`. Its `network` and its fabric are the
// host's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Fills in `network.placement`, `fabric` and `jobs`, and reduces `cluster` to the job's part. Does nothing
// without these keys. Returns whether the nodes of the job are known.
[[nodiscard]] bool load_jobs(YamlMap& root, Scenario& scenario, const PresetPlaces& places);

// "0-3", "7", "0-3,7": ascending ranges; nullopt when it is no list of nodes.
[[nodiscard]] std::optional<std::vector<int>> parse_node_list(std::string_view text);
// The shortest such text.
[[nodiscard]] std::string node_list_text(const std::vector<int>& nodes);

}  // namespace stagecraft
