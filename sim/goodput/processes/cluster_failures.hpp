// Failures that the cluster suffers as a whole: one after the other at Weibull gaps, in bursts within a fault
// domain, or planned.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/processes/fleet.hpp"
#include "sim/goodput/processes/process.hpp"

namespace stagecraft {

// Weibull gaps of mean 1/(N·rate), whichever nodes are down. Each failure hits one of the up nodes. The first
// gap begins at time 0, so for a shape below 1 the first days see more failures than the rate.
class ClusterFailures : public Process {
 public:
  ClusterFailures(int process, const WeibullClusterFailures& law, Fleet& fleet)
      : process_(process), law_(law), fleet_(fleet) {}

  void start() override { next(0, Duration(0)); }
  void fire(const Event& event) override;

 private:
  void next(std::uint32_t number, Duration now);

  int process_;
  const WeibullClusterFailures& law_;
  Fleet& fleet_;
};

// Mean size of a burst in a domain of `nodes`, all up: no burst is larger than its domain. In [1, nodes].
[[nodiscard]] double mean_burst(const BurstFailures& law, int nodes);

// Poisson bursts of each domain. A burst takes some of the domain's up nodes, uniformly without replacement,
// with one cause for all.
class Bursts : public Process {
 public:
  Bursts(int process, const BurstFailures& law, Fleet& fleet) : process_(process), law_(law), fleet_(fleet) {}

  void start() override;
  void fire(const Event& event) override;

 private:
  [[nodiscard]] int first_node(int domain) const { return domain * law_.domain_nodes; }
  [[nodiscard]] int nodes_of(int domain) const;
  [[nodiscard]] int size_of(int domain, std::uint32_t number) const;
  void next(int domain, std::uint32_t number, Duration now);

  int process_;
  const BurstFailures& law_;
  Fleet& fleet_;
};

// Every period plus or minus the jitter, an up node is chosen and announced, and leaves when the notice is
// over.
class PlannedMaintenance : public Process {
 public:
  PlannedMaintenance(int process, const Maintenance& law, Fleet& fleet)
      : process_(process), law_(law), fleet_(fleet) {}

  void start() override { next(0); }
  void fire(const Event& event) override;

 private:
  enum What : std::int32_t { kChoose, kTakeAway, kBringBack };
  [[nodiscard]] Duration due(std::uint32_t number) const;
  void next(std::uint32_t number);
  void choose(const Event& event);

  int process_;
  const Maintenance& law_;
  Fleet& fleet_;
};

}  // namespace stagecraft
