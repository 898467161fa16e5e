// Times of every pass of an order at given costs: a schedule with a clock and nothing else.
//
// For experiments without model, hardware or network. A rank runs its passes in order and waits at a pass
// whose input has not arrived. Both passes of a fused pair start when the inputs of both have arrived, and
// end together. A message between ranks arrives `message` later and costs the sender nothing.
//
//   makespan  from 0 to the last end on any rank: what an iteration takes when something global ends it.
//   span      the longest time of a rank from its first start to its last end: what an iteration takes when
//             every rank may go on by itself.
//   ideal     the work of the busiest rank, so that bubble = makespan - ideal.
//   source    the dependencies are those of schedule.hpp; three fractions of bubbles: Narayanan et al.,
//             SC'21.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct PassTime {
  std::int64_t start = 0;
  std::int64_t end = 0;
  friend bool operator==(const PassTime&, const PassTime&) = default;
};

struct Play {
  std::vector<std::vector<PassTime>> ranks;  // [rank][position in its order]
  std::vector<std::int64_t> busy;            // [rank] work; a fused pair counts once
  std::int64_t makespan = 0;
  std::int64_t span = 0;

  [[nodiscard]] std::int64_t ideal() const;
  [[nodiscard]] double bubble_over_ideal() const;  // 0 where nothing takes time
  [[nodiscard]] double bubble_fraction() const;    // idle share of ranks x makespan
};

// Duration of a single pass.
[[nodiscard]] std::int64_t length_of(Pass pass, const StageCosts& stage);
[[nodiscard]] std::int64_t length_of(const Action& action, const ScheduleCosts& costs);
// Duration of a fused pair: `pair`, or `fused` times the sum, to the nearest unit.
[[nodiscard]] std::int64_t length_of_pair(const Action& first, const Action& second,
                                          const ScheduleCosts& costs);

// requires an order that drains and that check() finds nothing wrong with.
[[nodiscard]] Play play(const Schedule& schedule, const ScheduleCosts& costs);

// Plays an order whose ranks stand still while a message of their own is under way. For any order.
[[nodiscard]] Play play_waiting_senders(const Schedule& schedule, const ScheduleCosts& costs);

// Time that one more iteration adds when iterations follow without a barrier; for an asynchronous order, the
// time of an iteration in steady state. requires as play(), but the order need not drain.
[[nodiscard]] std::int64_t period(const Schedule& schedule, const ScheduleCosts& costs);

}  // namespace stagecraft
