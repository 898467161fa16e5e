// The switches of nodes from Slurm's topology.conf or topology.yaml, as the `fabric` of a scenario.
//
//   read      SwitchName with Switches or Nodes (a tree); BlockName with Nodes, BlockSizes (blocks); keys in
//             either case, # comments, lines continued by a backslash. In YAML the topology that is the
//             cluster's default: tree, block or flat.
//   refused   ring and torus3d by name; a switch below two others, in a circle or never defined; a node below
//             two leaves.
//   missing   the machines and the speed of every link: Slurm reads LinkSpeed and does not use it.
//   warnings  leaves or blocks of unlike size; trees without a common root, between which nothing is known.
//   source    SchedMD/slurm @284c3b9, topology.conf(5), topology.yaml(5)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "formats/fragment.hpp"
#include "formats/machine_fragment.hpp"

namespace stagecraft {

// Lines of topology.conf; a YAML list of topologies.
[[nodiscard]] bool looks_like_slurm_conf(std::string_view text);
[[nodiscard]] bool looks_like_slurm_yaml(std::string_view text);

// `text` is UTF-8 (formats/input_text.hpp).
[[nodiscard]] std::optional<Fragment> import_slurm_topology(std::string_view text, const std::string& name,
                                                            const TopologyRequest& request,
                                                            Diagnostics& diagnostics);

}  // namespace stagecraft
