// A machine as NCCL sees it: the XML that NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads.
//
//   read      <system version="1"> with cpu, pci (nested for bridges), gpu, nvlink, nic, net. GPUs and NICs
//             of files without gpu or net elements are told by the class of their PCI device.
//   refused   version 2, which is RCCL's; <graphs>, the rings and trees that NCCL chose; what is no such XML.
//   rates     as NCCL plans with them: PCIe width * r / 80 GB/s, NVLink by generation, NIC speed in Mbit/s.
//   warnings  links of unknown speed, NVLinks whose other end is unknown, GPUs or NICs that are not alike.
//   source    NVIDIA/nccl @5067397 src/graph/{xml,topo}.{h,cc}; ROCm/rccl issue 1185 for version 2.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "formats/fragment.hpp"
#include "formats/machine_fragment.hpp"

namespace stagecraft {

// `text` is UTF-8 (formats/input_text.hpp).
[[nodiscard]] std::optional<Fragment> import_nccl_topology(std::string_view text, const std::string& name,
                                                           const TopologyRequest& request,
                                                           Diagnostics& diagnostics);

}  // namespace stagecraft
