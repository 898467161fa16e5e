// GPUs as the topology files of other programs name them: device ids, generations, rates of a link.
//
//   source   device ids: the PCI ID Repository (pci.ids), vendor 10de.
//            NCCL's rates: NVIDIA/nccl @5067397 src/graph/topo.h, GB/s of one NVLink in one direction as its
//            planner takes them. Line rates: stas00/ml-engineering network/README.md, NVLink by generation.
#pragma once

#include <string>
#include <string_view>

#include "base/units.hpp"

namespace stagecraft {

struct GpuModel {
  std::string_view device;        // spelled as in the node presets
  std::string_view product = {};  // as nvidia-smi prints it without its maker; empty: as `device`
  std::string_view pci;           // "0x2330"; empty: not known
  int sm = 0;                     // compute capability, 90 for 9.0
  std::string_view profile;       // the cost profile that is made for it; empty where there is none
  Bandwidth host_link{};          // where that is no PCIe x16: of GB200, half of a Grace CPU's NVLink-C2C
};

// nullptr when it is not known. Letters of the id may be in either case.
[[nodiscard]] const GpuModel* gpu_model_by_pci(std::string_view device_id);
// By the name of the presets or of nvidia-smi ("NVIDIA H100 80GB HBM3"), in any case, with blanks or dashes.
[[nodiscard]] const GpuModel* gpu_model_by_name(std::string_view device);
// Does one profile serve both names? Of two known models by that; else every word of the shorter name is one of
// the longer: "NVIDIA GB200" is the GB200-186GB.
[[nodiscard]] bool is_same_gpu(std::string_view a, std::string_view b);
// "did you mean 'H100-SXM5-80GB'?", or empty where no name is near.
[[nodiscard]] std::string near_gpu_models(std::string_view device);

// One NVLink in one direction: NCCL's planning rate, and the line rate. 0 when that generation has none.
struct NvlinkRates {
  Bandwidth planned{};
  Bandwidth line{};
  int links = 0;  // of a GPU of SXM form
};
[[nodiscard]] NvlinkRates nvlink_rates(int sm);
// Of a data-centre GPU: x16 of PCIe 3.0 (P100, V100), 4.0 (A100) or 5.0.   source  NVIDIA's data sheets
[[nodiscard]] Bandwidth pcie_line_rate(int sm);
// "450 GB/s": all links of a GPU at line rate, as an example where nobody says the rate; "…" where the
// generation is not known or has none.
[[nodiscard]] std::string nvlink_example(int sm);

// NVLinks of any one GPU so far: a GPU with more in all is on a switch.   source  the generations above
inline constexpr int kMostNvlinksOfAGpu = 18;

}  // namespace stagecraft
