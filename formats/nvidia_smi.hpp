// A machine from the matrix of `nvidia-smi topo -m`: GPUs and NICs, the number of NVLinks between GPUs, and
// the nearest NICs of each GPU. The matrix has classes of paths, but no bandwidths and no device.
//
//   read     columns between tabs or runs of blanks, in colours or underlined, NICs as NIC0 with a legend or
//            as mlx5_0. Only the first GPUs + NICs words of a row count: what follows holds blanks and
//            commas.
//   near     PIX is below one PCIe bridge, PXB below several, PHB below one host bridge, NODE in a NUMA node,
//            SYS across sockets. Where every GPU is SYS from every NIC nothing is concluded: GPUs on
//            NVLink-C2C say so.
//   refused  a row that is cut short, a class that nobody knows, a matrix that is not symmetric.
//   source   the legend that the program prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "formats/fragment.hpp"
#include "formats/machine_fragment.hpp"

namespace stagecraft {

// Is some line the head of such a matrix?
[[nodiscard]] bool looks_like_nvidia_smi(std::string_view text);

// `text` is UTF-8 (formats/input_text.hpp).
[[nodiscard]] std::optional<Fragment> import_nvidia_smi(std::string_view text, const std::string& name,
                                                        const TopologyRequest& request,
                                                        Diagnostics& diagnostics);

}  // namespace stagecraft
