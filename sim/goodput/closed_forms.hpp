// What a pencil says about failures: exponential laws in closed form, for choosing intervals and for testing
// the simulator.
//
// Times are in seconds where a formula takes any unit; λ = 1/M, M the mean time between failures of the job.
//
//   source  resilience.md, section 8, which names the source of each.
//   throws  InternalError on arguments outside a formula's domain (negative times, M <= 0, no node).
#pragma once

#include <cstdint>
#include <functional>

#include "base/units.hpp"

namespace stagecraft {

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
[[nodiscard]] double expected_segment_time(const Segment& segment);

// W* = M (1 + W0(−e^{−C/M−1})): the W with the least E[T]/W, whatever R and D are. 0 for C = 0.
[[nodiscard]] double optimal_interval(double checkpoint, double mean_time_between_failures);
// sqrt(2CM): Young 1974.
[[nodiscard]] double young_interval(double checkpoint, double mean_time_between_failures);
// sqrt(2CM) − C: Daly 2006, first order; 0 where that is negative.
[[nodiscard]] double daly_first_order_interval(double checkpoint, double mean_time_between_failures);
// sqrt(2CM) [1 + sqrt(C/(2M))/3 + C/(18M)] − C for C < 2M, else M: Daly 2006, higher order.
[[nodiscard]] double daly_interval(double checkpoint, double mean_time_between_failures);
// M e^{R/M} (e^{(W+C)/M} − 1)/W for each second of work: Daly 2006; D is not in it.
[[nodiscard]] double daly_time_per_work(const Segment& segment);

// Effective training time ratio, (1 − N r (u0 + Δt/2)) / (1 + w/Δt), while N r (u0 + Δt/2) is much less
// than 1.
struct EttrInputs {
  double failures_per_second = 0;  // N r
  double restart = 0;              // u0
  double interval = 0;             // Δt, > 0
  double stall = 0;                // w, of one checkpoint
  double until_usable = 0;         // s + P of an asynchronous checkpoint, more work lost; else 0
};
[[nodiscard]] double ettr_approximation(const EttrInputs& inputs);

// One failure in a cycle of length M: all replicas stall, one of them is away for a time, all wait for it to
// rejoin. 1 − (stall + away/replicas + rejoin)/M
struct ElasticCycle {
  int replicas = 1;
  double stall = 0;
  double away = 0;
  double rejoin = 0;
  double mean_time_between_failures = 0;
};
[[nodiscard]] double elastic_goodput(const ElasticCycle& cycle);

// P(no group of m loses all its members) when k of N nodes are lost at once, each set of k equally likely:
// Σ_i (−1)^i C(N/m, i) C(N − mi, k − mi)/C(N, k), added up without cancellation. m divides N, k <= N.
[[nodiscard]] double recoverable_probability(int nodes, int group, int lost);

// The least s with P(Binomial(n, p) <= s) >= 0.99: ByteRobust's rule, n = nodes. Where a spare can be away as
// any other node, n = nodes + s; then at most 100,000.
enum class Spare : std::uint8_t { kAlwaysThere, kLikeAnyNode };
[[nodiscard]] int standby_pool(int nodes, double probability, Spare spare = Spare::kAlwaysThere);

// Nodes that fail and are repaired independently: the number up is Binomial(N, a), a = MTTF/(MTTF + MTTR),
// whatever the law of repairs.
[[nodiscard]] double availability(double mean_time_to_failure, double mean_time_to_repair);
// P(exactly `up` of N are up).
[[nodiscard]] double probability_up(int nodes, double availability, int up);
// Σ_n P(n up) X(n): the long-run mean throughput with free instant recovery. Nobody beats it.
[[nodiscard]] double free_recovery_throughput(int nodes, double availability,
                                              const std::function<double(int nodes)>& throughput);

}  // namespace stagecraft
