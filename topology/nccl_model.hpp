// NCCL's own estimate of a collective, by which it chooses algorithm and protocol.
//
// t = latency + S / B for each algorithm and protocol; the fastest one runs. On published curves it is too
// fast by 3 to 10 % above 64 MiB, and by far more below (docs/accuracy.md): it predicts the choice well, and
// the time less well.
//
//   serves   all-reduce (ring, tree, NVLS in a node, NVLSTree over nodes), all-gather and reduce-scatter
//            (ring, PAT with one GPU per node), on nodes with NVLink. Not broadcast, send-receive and
//            all-to-all.
//   not in   CollNet, plain tree graphs, PCIe and AMD nodes, GPUs that share a NIC: an NVSwitch and a NIC for
//            each GPU.
//   source   NCCL 2.28.9, src/graph/tuning.cc and search.cc. Channels as seen in logs: A100 12 x 20 GB/s,
//            H100 12 x 30 and 8 x 40 for NVLS; B200 12 x 60 and 8 x 80 are twice those of the H100, assumed.
//            Between nodes NCCL's channel rates reach 0.96 of the NICs (8 x 24 of 200 GB/s, 8 x 48 of 400).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

enum class NcclGeneration : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell };

// The generation by the NVLink of a GPU: 150, 300, 450 and 900 GB/s; nullopt without NVLink.
[[nodiscard]] std::optional<NcclGeneration> nccl_generation(Bandwidth nvlink);

// Generation of the chip: an A100 with faster links is still an Ampere, an H800 a Hopper. It follows from the
// links that the profile was measured over, and is at least Hopper where the profile computes in fp8 or has
// NVLS curves. Without this information it follows from the node's links. nullopt without NVLink.
[[nodiscard]] std::optional<NcclGeneration> nccl_generation(const HardwareProfile& profile, Bandwidth nvlink);

// Shares of the bus rate that NCCL's algorithms reach at most: tuning.cc, trees and rings of LL128, PAT.
inline constexpr double kNcclTreeShare = 0.92, kNcclPatShare = 0.75;

// Bus bandwidth of NVLS's all-reduce inside a node; 0 where there is none. Its latency is kNcclNvlsLatency.
[[nodiscard]] Bandwidth nccl_nvls_bandwidth(NcclGeneration generation);
// The NVLinks at which it has that bandwidth: those of the generation's own nodes.
[[nodiscard]] Bandwidth nccl_usual_nvlink(NcclGeneration generation);
inline constexpr Duration kNcclNvlsLatency = std::chrono::microseconds(25);

// Channels, of a multiprocessor each, that carry collectives between nodes: one is found for each NIC and doubled,
// once more where a channel has 25 GB/s or more; 16 serve 8 NICs at any rate.
//   source  src/graph/search.cc, ncclTopoDupChannels(); src/graph/connect.cc, ncclTopoPostset()
[[nodiscard]] int nccl_network_channels(int nics, Bandwidth nic);
inline constexpr int kNcclNetworkChannels = 16;  // at most

struct NcclSystem {
  NcclGeneration generation = NcclGeneration::kAmpere;
  int ranks = 2;
  int nodes = 1;
  Bandwidth network{};  // out of a node; meaningless for one node
};

enum class NcclProtocol : std::uint8_t { kLL, kLL128, kSimple };
inline constexpr std::string_view kNcclProtocolNames[] = {"LL", "LL128", "Simple"};

struct NcclEstimate {
  std::string_view algorithm;  // name as in CollectiveCost
  NcclProtocol protocol = NcclProtocol::kSimple;
  Duration time{};
};

// All options that NCCL considers, in no particular order; empty for a kind without a model.
//   throws  InternalError on fewer than two ranks, nodes that do not divide them, or a size below 1 B.
[[nodiscard]] std::vector<NcclEstimate> nccl_estimates(const NcclSystem& system, CollectiveKind kind,
                                                       Bytes size);

// The least of them; nullopt where there are none.
[[nodiscard]] std::optional<NcclEstimate> nccl_choice(const NcclSystem& system, CollectiveKind kind,
                                                      Bytes size);

}  // namespace stagecraft
