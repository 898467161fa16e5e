// Failures of single nodes, each with its own clock: exponential, by component, or Weibull since the last
// repair.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/goodput/processes/fleet.hpp"
#include "sim/goodput/processes/process.hpp"

namespace stagecraft {

// One clock per node. A process of several components has several, in the same process.
struct ClockLaw {
  double rate_per_second = 0;  // 1/mean
  double shape = 1;            // 1: exponential
  double lemon_factor = 1;     // factor on the rate, per past incident of the node
  int fixed_cause = -1;        // -1: drawn from the shares
};

class NodeClocks : public Process {
 public:
  // laws: fewer than 256.
  NodeClocks(int process, std::vector<ClockLaw> laws, Fleet& fleet);

  void fire(const Event& event) override;
  void back(int node, Duration now) override;
  void failed(int node, Duration now) override;

 private:
  void wind(int law, int node, Duration now);
  [[nodiscard]] std::uint32_t& draws(int law, int node);

  int process_;
  std::vector<ClockLaw> laws_;
  Fleet& fleet_;
  // By law and node: number of draws; an event of an earlier draw is stale.
  std::vector<std::uint32_t> draws_;
};

}  // namespace stagecraft
