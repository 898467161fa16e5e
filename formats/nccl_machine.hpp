// The elements of an NCCL topology file, before any conclusions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "formats/xml_reader.hpp"

namespace stagecraft {

// A PCIe link as NCCL counts it.
struct NcclPciLink {
  Bandwidth rate{};
  bool assumed = false;   // the file does not tell its speed
  std::string text = {};  // "x16 at 32 GT/s"
};

struct NcclNvlink {
  std::string target = {};  // bus id
  std::string target_class = {};
  std::int64_t count = 0;
  SourceLocation where = {};
};

struct NcclGpu {
  std::int64_t index = 0;
  bool by_class = false;  // no <gpu> element: told by its PCI class
  std::string bus = {};
  std::string device_id = {};  // "0x2330"
  int sm = 0;                  // 0: not told
  NcclPciLink pci = {};        // the narrowest between the GPU and its CPU
  std::int64_t cpu = 0;        // index of the cpu element
  std::string bridge = {};     // bus id of the PCIe switch above; empty: none
  std::vector<NcclNvlink> nvlinks = {};
  SourceLocation where = {};
};

struct NcclNic {
  std::string name = {};
  bool by_class = false;
  std::optional<Bandwidth> rate = {};
  std::int64_t cpu = 0;
  std::string bridge = {};
  SourceLocation where = {};
};

struct NcclMachine {
  std::vector<NcclGpu> gpus = {};
  std::vector<NcclNic> nics = {};
  std::vector<std::string> hosts = {};  // distinct host_hash
  std::int64_t cpus = 0;
  std::vector<std::string> unread = {};  // unknown element names, each once
  bool has_c2c = false;
};

// Reads the root element `system`. Wrong attributes are reported; nullopt after an error.
[[nodiscard]] std::optional<NcclMachine> read_nccl_machine(const XmlElement& system,
                                                           Diagnostics& diagnostics);

}  // namespace stagecraft
