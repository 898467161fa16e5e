// What the failure processes of a scenario are expected to do, on average: what intervals, spares and policies
// are chosen by.
//
//   source   docs/resilience.md, section 2 (laws).
#pragma once

#include "base/units.hpp"
#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {

// Failures of all causes per second when all `nodes` are up: the input of an optimal checkpoint interval.
// Slowness and announced maintenance do not count. A trace counts the moments at which it takes some of these
// nodes. Laws with a lemon_factor have no formula: the mean of some histories, and at least the rate of a node
// without incidents.
[[nodiscard]] double failures_per_second(const FailureSpec& spec, int nodes);
// Those of one of its processes.
[[nodiscard]] double failures_per_second(const FailureSpec& spec, const FailureProcess& process, int nodes);

// Do nodes fail more often after each of their incidents? Then their rate has no formula.
[[nodiscard]] bool has_lemons(const FailureProcess& process);

// Failures of a process that cost a node: their share of all failures, and their mean times.
struct NodeLosses {
  double share = 0;
  double detect_s = 0, repair_s = 0;
};
[[nodiscard]] NodeLosses node_losses(const FailureSpec& spec, const FailureProcess& process);
// Nodes that one such failure costs on average while all `nodes` are up: more than one for bursts.
[[nodiscard]] double nodes_of_each(const FailureProcess& process, int nodes);

// Fraction of time that a node is away for repair: mean repair over the sum of mean repair and mean time
// between failures that cost the node. 0 for a trace or a spot market, which say themselves when nodes come
// back, and where nodes never come back.
[[nodiscard]] double unavailable_share(const FailureSpec& spec, int nodes);

// All fail-slow processes together while all `nodes` are up: onsets per second, and mean duration of
// slowness; zero without such a process.
struct SlownessExpected {
  double onsets_per_s = 0;
  Duration lasts{};
};
[[nodiscard]] SlownessExpected slowness_expected(const FailureSpec& spec, int nodes);

}  // namespace stagecraft
