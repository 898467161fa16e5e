// A topology file of any kind that is read here: which one it is, is seen from the text.
//
//   <…           XML of NCCL                     formats/nccl_topology.hpp   → cluster.node
//   GPU0 GPU1 …  `nvidia-smi topo -m`            formats/nvidia_smi.hpp      → cluster.node
//   SwitchName=… topology.conf or topology.yaml  formats/slurm_topology.hpp  → cluster.nodes, cluster.fabric
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "formats/fragment.hpp"
#include "formats/machine_fragment.hpp"

namespace stagecraft {

// Other files, and text that is no UTF-8, are reported.
[[nodiscard]] std::optional<Fragment> import_topology(std::string_view text, const std::string& name,
                                                      const TopologyRequest& request,
                                                      Diagnostics& diagnostics);

}  // namespace stagecraft
