// Rate of failures that copies in host memories do not survive: these need the checkpoints in storage.
//
//   group    places 0..m-1, m..2m-1, … hold each other's shards (checkpoint_store.hpp). Its copies are gone
//            when none of its nodes is left from a loss until the job trains again.
//   alone    nodes that are lost one by one. A failure in a stall begins it again: one of length t, detection
//            and `stall`, with p = 1 - e^(-λ t) at λ failures of the job. So d nodes are followed by another
//            with p h / (1 - p (1 - h)), where h = a (N - d) / N is the chance of a failure, which costs a node
//            with a, to hit one of the others. All sets of d nodes are equally likely.
//   bursts   what a burst leaves of the groups of its domain, all sets of so many nodes equally likely.
//   trace    all that a trace and the spot market take away: how many of these memory survives is counted.
//   wrong    silent corruption, where it is not found at once: the copies are newer than its onset.
//   without  the ring that the last group is, and domains that cut a group: groups of their own.
#pragma once

#include "base/units.hpp"
#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {

struct HostCopies {
  int copies = 2;      // m >= 1, the host's own among them
  Duration stall{};    // from the end of detection until a lost place trains again, without a wait
  bool waits = false;  // does it wait for the repair of a lost node before that?
};

// A second of training, when all `nodes` are up and every loss stops the job for `stall`; at most
// failures_per_second.
[[nodiscard]] double memory_losses_per_second(const FailureSpec& spec, int nodes, const HostCopies& how);

}  // namespace stagecraft
