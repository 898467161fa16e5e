// One machine as described by a file, as the `node` of a scenario.
//
//   stagecraft: 1
//   cluster:
//     node:
//       device: H100-SXM5-80GB  # PCI device 0x2330
//
// Required values that the file lacks become lines of `missing`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "formats/fragment.hpp"
#include "formats/gpu_models.hpp"

namespace stagecraft {

// The user's additions to a topology, for values that the file lacks.
struct TopologyRequest {
  std::optional<std::string> device = {};  // the GPU
  std::optional<Bandwidth> link = {};      // of one NIC
};

template <class T>
struct MachineFact {
  T value{};
  std::string comment = {};  // where it came from
  SourceLocation where = {};
};

struct MachineFacts {
  std::optional<MachineFact<std::string>> device = {};
  MachineFact<std::int64_t> gpus = {};
  std::optional<MachineFact<Bandwidth>> nvlink = {};  // of one GPU
  std::string nvlink_open = {};  // what stands behind `nvlink:` where it is missing; empty: there is none
  std::optional<MachineFact<std::int64_t>> nics = {};
  std::optional<MachineFact<Bandwidth>> nic_bandwidth = {};
  std::optional<MachineFact<Bandwidth>> pcie = {};
  std::optional<MachineFact<std::int64_t>> gpus_per_pcie_switch = {};
  Fragment notes = {};  // head, assumed, ignored, missing
};

[[nodiscard]] Fragment machine_fragment(const MachineFacts& facts);

// The rate of a NIC, a bare quantity with its unit: "400 Gb/s".
[[nodiscard]] YamlNode fragment_bit_rate(Bandwidth rate, const SourceLocation& where);

// "0-3,6": ascending numbers as ranges.
[[nodiscard]] std::string as_ranges(const std::vector<std::int64_t>& numbers);

}  // namespace stagecraft
