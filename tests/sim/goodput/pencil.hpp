// Exponential laws in closed form that no prediction needs: what the simulator and the closed forms of
// sim/goodput are tested against.
//
// Times are in seconds where a formula takes any unit; λ = 1/M, M the mean time between failures of the job.
//
//   source  docs/resilience.md, section 8, which names the source of each.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/goodput/closed_forms.hpp"
#include "sim/goodput/log_gamma.hpp"

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

// sqrt(2CM) − C: Daly 2006, first order; 0 where that is negative.
inline double daly_first_order_interval(double checkpoint, double mean_time_between_failures) {
  return std::max(0.0, young_interval(checkpoint, mean_time_between_failures) - checkpoint);
}
// M e^{R/M} (e^{(W+C)/M} − 1)/W for each second of work: Daly 2006; D is not in it.
inline double daly_time_per_work(Segment segment) {
  segment.downtime = 0;
  return expected_segment_time(segment) / segment.work;
}

// Effective training time ratio, (1 − N r (u0 + Δt/2)) / (1 + w/Δt), while N r (u0 + Δt/2) is much less
// than 1.
struct EttrInputs {
  double failures_per_second = 0;  // N r
  double restart = 0;              // u0
  double interval = 0;             // Δt, > 0
  double stall = 0;                // w, of one checkpoint
  double until_usable = 0;         // s + P of an asynchronous checkpoint, more work lost; else 0
};
inline double ettr_approximation(const EttrInputs& in) {
  const double lost = in.failures_per_second * (in.restart + in.interval / 2 + in.until_usable);
  return (1 - lost) / (1 + in.stall / in.interval);
}

// One failure in a cycle of length M: all replicas stall, one of them is away for a time, all wait for it to
// rejoin. 1 − (stall + away/replicas + rejoin)/M
struct ElasticCycle {
  int replicas = 1;
  double stall = 0;
  double away = 0;
  double rejoin = 0;
  double mean_time_between_failures = 0;
};
inline double elastic_goodput(const ElasticCycle& cycle) {
  return 1 - (cycle.stall + cycle.away / cycle.replicas + cycle.rejoin) / cycle.mean_time_between_failures;
}

// Nodes that fail and are repaired independently: the number up is Binomial(N, a), a = MTTF/(MTTF + MTTR),
// whatever the law of repairs.
inline double availability(double mean_time_to_failure, double mean_time_to_repair) {
  return mean_time_to_failure / (mean_time_to_failure + mean_time_to_repair);
}
// P(exactly `up` of N are up), 0 < a < 1.
inline double probability_up(int nodes, double a, int up) {
  return std::exp(log_choose(nodes, up) + up * std::log(a) + (nodes - up) * std::log1p(-a));
}
// Σ_n P(n up) X(n): the long-run mean throughput with free instant recovery. Nobody beats it.
inline double free_recovery_throughput(int nodes, double a,
                                       const std::function<double(int nodes)>& throughput) {
  double sum = 0;
  for (int up = 0; up <= nodes; ++up) sum += probability_up(nodes, a, up) * throughput(up);
  return sum;
}

}  // namespace stagecraft::pencil
