// Closed forms of exponential failure laws, for choosing intervals and spares.
//
// Times are in seconds where a formula takes any unit. λ = 1/M; M is the mean time between failures of the
// job.
//
//   source  docs/resilience.md, section 8, which names the source of each.
//   throws  InternalError on arguments outside a formula's domain (negative times, M <= 0, no node).
#pragma once

#include <cstdint>

namespace stagecraft {

// W* = M (1 + W0(−e^{−C/M−1})): the work W before a checkpoint C with the least expected time per second of
// work, independent of restart times and downtimes. 0 for C = 0.
[[nodiscard]] double optimal_interval(double checkpoint, double mean_time_between_failures);
// sqrt(2CM): Young 1974.
[[nodiscard]] double young_interval(double checkpoint, double mean_time_between_failures);
// sqrt(2CM) [1 + sqrt(C/(2M))/3 + C/(18M)] − C for C < 2M, else M: Daly 2006, higher order.
[[nodiscard]] double daly_interval(double checkpoint, double mean_time_between_failures);

// P(no group of m loses all its members) when k of N nodes are lost at once, each set of k equally likely:
// Σ_i (−1)^i C(N/m, i) C(N − mi, k − mi)/C(N, k), added up without cancellation. m divides N, k <= N.
[[nodiscard]] double recoverable_probability(int nodes, int group, int lost);

// The least s with P(Binomial(n, p) <= s) >= 0.99: ByteRobust's rule, n = nodes. Where a spare can be away as
// any other node, n = nodes + s; then at most 100,000.
enum class Spare : std::uint8_t { kAlwaysThere, kLikeAnyNode };
[[nodiscard]] int standby_pool(int nodes, double probability, Spare spare = Spare::kAlwaysThere);

}  // namespace stagecraft
