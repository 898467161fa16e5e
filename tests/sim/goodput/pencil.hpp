// The time of a segment of work under exponential failures, which no prediction needs: what the simulator and the
// intervals of sim/goodput are tested against.
//
// Times are in seconds where a formula takes any unit; λ = 1/M, M the mean time between failures of the job.
//
//   source  docs/resilience.md, section 8
#pragma once

#include <cmath>

namespace stagecraft::pencil {

// Work W, then a checkpoint C. A failure at any time of either, or of a restart, costs a downtime D, in which
// nothing fails, and a restart R, in which something may.
struct Segment {
  double work = 0;                        // W
  double checkpoint = 0;                  // C
  double downtime = 0;                    // D
  double restart = 0;                     // R
  double mean_time_between_failures = 0;  // M
};
// E[T] = e^{R/M} (M + D) (e^{(W+C)/M} − 1)
inline double expected_segment_time(const Segment& s) {
  const double mean = s.mean_time_between_failures;
  return std::exp(s.restart / mean) * (mean + s.downtime) * std::expm1((s.work + s.checkpoint) / mean);
}

}  // namespace stagecraft::pencil
