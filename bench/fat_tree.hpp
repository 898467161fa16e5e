// The network of workload C: a fat tree of two levels, 8 hosts per leaf, 8 spines, links of 50 GB/s and 1 us,
// one per direction. Any number of hosts; the last leaf may have fewer.
#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft {

class FatTree {
 public:
  static constexpr int kHostsPerLeaf = 8;
  static constexpr int kSpines = 8;
  static constexpr Bandwidth kLink{50e9};
  static constexpr Duration kLatency = std::chrono::microseconds(1);  // per link

  FatTree(ProgramBuilder& builder, int hosts);

  // The links from host to host, by a spine that depends on the two of them alone. requires from != to
  [[nodiscard]] std::vector<LinkUse> route(int from, int to) const;

 private:
  std::vector<LinkId> up_, down_;              // of each host
  std::vector<LinkId> to_spine_, from_spine_;  // leaf * kSpines + spine
};

}  // namespace stagecraft
