// Input and output of a replay of a published evaluation.
//
// The failure figures of the Oobleck and Bamboo papers come from small simulators fed with failure-free
// throughputs. A replay follows their event rules, either as published with all defects, or corrected. It
// tests event logic; it is not a measurement. `rules:` of a policy with a table of throughputs selects it.
//
//   source  docs/resilience.md, section 7.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/account.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/incident.hpp"
#include "sim/goodput/replay/event_queue.hpp"

namespace stagecraft {

// A node is requested or leaves; in the order of a trace.
struct NodeChange {
  Duration time{};
  bool joins = true;
  std::int32_t node = 0;
  Duration ready{};        // for a join: time from which the node is usable
  std::int32_t cause = 0;  // for a loss: an index in History::causes

  friend bool operator==(const NodeChange&, const NodeChange&) = default;
};

// Nodes that are up at the start join at 0 and are usable at once. What is no coming or going (faults of
// processes, slowness, corruption, notices) is left out: the published rules know nothing of it.
[[nodiscard]] std::vector<NodeChange> changes_of(const History& history);

struct ReplayRules {
  Rules rules = Rules::kCorrected;
  Ties ties = Ties::kTraceOrder;  // corrected rules are for kTraceOrder
  Duration end{};                 // events at or after it do not happen
};

// A step that came to its end. Published rules let one end with a node missing.
struct ReplayStep {
  Duration start{};
  Duration end{};
  bool kept = true;  // false once a roll-back has undone it

  friend bool operator==(const ReplayStep&, const ReplayStep&) = default;
};

enum class ReplayState : std::uint8_t { kStopped, kRendezvous, kRunning };

struct Replay {
  std::optional<Duration> start;  // start of the first training
  Duration end{};                 // ReplayRules::end
  std::vector<ReplayStep> steps;  // steps in the order of their ends
  int rendezvous = 0;             // completed rendezvous, including those with too few nodes
  int fatal = 0;                  // Bamboo: losses that no shadow could take over
  int removals = 0;

  // Training ended for the loss of a node, then or at a later step end: the first that it had gone on with.
  struct Stop {
    Duration time{};
    std::int32_t cause = 0;
  };
  std::vector<Stop> stops;

  // State changes for accounts: the start of each job state, and the pauses of training for a checkpoint.
  struct Since {
    Duration time{};
    ReplayState state = ReplayState::kStopped;
  };
  struct Pause {
    Duration start{};
    Duration end{};
  };
  std::vector<Since> states;
  std::vector<Pause> checkpoints;
  // Nodes that exist, those under creation among them, after each time at which their number changed.
  struct Count {
    Duration time{};
    int nodes = 0;
  };
  std::vector<Count> counts;

  [[nodiscard]] std::int64_t kept_steps() const;
};

// Prices of an account from `from` to the end. A kept step of length d is productive for min(d, ideal_step)
// and degraded for the rest; a rendezvous is reconfigure; a stopped job is idle; training without a kept step
// is lost work. A stop's cause is charged with the losses since the previous stop, and with the time until
// training goes on.
//   requires ideal_step > 0 and 0 <= from <= replay.end
struct ReplayPrices {
  Duration from{};
  Duration ideal_step{};
  std::int64_t samples_per_step = 0;
  std::size_t causes = 1;  // causes of the history
  bool timeline = false;
};
[[nodiscard]] Account account_of(const Replay& replay, const ReplayPrices& prices);

// Step time of the published simulators: samples/throughput in whole milliseconds, rounded down. A throughput
// of 0 is a step of 10^12 ms.
[[nodiscard]] Duration published_step(std::int64_t samples, double samples_per_second);

}  // namespace stagecraft
