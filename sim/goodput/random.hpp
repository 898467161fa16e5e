// Random numbers that know who asks: a draw is a pure function of (seed, repeat, entity, purpose, process,
// index).
//
// A counter-based generator needs no state that is handed around. What node 12 draws for its third time to
// failure is the same number whatever the policy does, however many other nodes there are and in whatever
// order events happen: policies are compared on the same failures (common random numbers), and a repeat gives
// the same bits on any thread.
//
//   source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11: Philox4x32, 10 rounds.
#pragma once

#include <array>
#include <cstdint>

#include "base/units.hpp"

namespace stagecraft {

// Ten rounds of Philox on 128 bits of counter under 64 bits of key. Published known answers hold
// (random_test.cpp).
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key);

// Purpose of a draw. The numbers are part of the results: append new purposes at the end.
enum class Purpose : std::uint16_t {
  kTimeToFailure,
  kCause,
  kRepair,
  kBurstTime,
  kBurstSize,
  kBurstChoice,
  kClusterGap,
  kNodeChoice,
  kTraceChoice,
  kSpotTable,
  kSpotSlots,
  kSpotRemoval,
  kSpotAddition,
  kSlowOnset,
  kSlowFactor,
  kSlowDuration,
  kCorruptionOnset,
  kDiscovery,
  kMaintenance,
  kPolicy,
};

struct StreamKey {
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
  std::uint32_t entity = 0;  // a node, a fault domain, the number of a cluster-wide event
  Purpose purpose = Purpose::kTimeToFailure;
  std::uint16_t process = 0;  // which of the scenario's processes, in the order of the file

  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};

// The draws of one key, in order: draw i uses 64-bit number i only. A copy continues at the position of the
// original.
class Stream {
 public:
  explicit Stream(const StreamKey& key, std::uint32_t first_draw = 0) : key_(key), next_(first_draw) {}

  std::uint64_t bits();
  double uniform();  // in (0, 1), both ends excluded: 52 bits
  // A time of mean 1/rate seconds: −ln(U)/rate. kNever (never.hpp) for rate 0 and beyond 292 years.
  //   throws InternalError when the rate is negative or no number.
  Duration exponential(double rate_per_second);
  // scale·(−ln U)^(1/shape) with the scale of mean 1/rate seconds, 1/(rate·Γ(1 + 1/shape)); never as above.
  //   throws InternalError unless shape > 0 and rate >= 0.
  Duration weibull(double shape, double rate_per_second);
  // ln(duration) uniform between ln(low) and ln(high). throws InternalError unless 0 < low <= high.
  Duration log_uniform(Duration low, Duration high);
  int below(int n);  // uniform in [0, n). throws InternalError when n < 1

 private:
  StreamKey key_;
  std::uint32_t next_;
  std::uint32_t held_block_ = 0;  // 1 + the number of the block in `held_`, 0: none
  std::array<std::uint64_t, 2> held_{};
};

}  // namespace stagecraft
