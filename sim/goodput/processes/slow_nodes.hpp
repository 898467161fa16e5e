// Nodes that go on, but slowly, and nodes whose results go wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/processes/fleet.hpp"
#include "sim/goodput/processes/process.hpp"

namespace stagecraft {

// Onsets a second of a node that is not slow. Of a share p of all time: p/((1 − p)·mean), with the mean of a
// log-uniform law, (longest − shortest)/ln(longest/shortest).
[[nodiscard]] double slow_onsets_per_second(const FailSlow& law);
[[nodiscard]] double mean_slow_seconds(const FailSlow& law);

// Exponential onsets on up nodes that this process does not slow already. The number of the draw identifies
// stale events.
class SlowNodes : public Process {
 public:
  SlowNodes(int process, const FailSlow& law, Fleet& fleet);

  void fire(const Event& event) override;
  void back(int node, Duration now) override;

 private:
  enum What : std::int32_t { kOnset, kEnd };

  int process_;
  const FailSlow& law_;
  Fleet& fleet_;
  double rate_;
  std::vector<std::uint32_t> draws_;  // by node
};

// Exponential onsets; each is found out after a delay of exponential law, be the node still there or not.
class Corruptions : public Process {
 public:
  Corruptions(int process, const SilentCorruption& law, Fleet& fleet)
      : process_(process), law_(law), fleet_(fleet), draws_(as_index(fleet.nodes())) {}

  void fire(const Event& event) override;
  void back(int node, Duration now) override;

 private:
  enum What : std::int32_t { kOnset, kDiscovery };
  void discover_later(const Event& onset);

  int process_;
  const SilentCorruption& law_;
  Fleet& fleet_;
  std::vector<std::uint32_t> draws_;  // by node
  std::vector<Duration> onsets_;  // onsets of undiscovered corruptions, by Event::number of their discovery
};

}  // namespace stagecraft
