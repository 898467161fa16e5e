// What the passes of a fused pair last: a forward beside the backward of another micro-batch, as DualPipe
// runs them.
//
// The two are cut into pieces that take turns, so that what one of them sends moves while the other one
// computes. With C1, C2 what the passes compute and N1, N2 what they send (tensor, context and expert
// traffic inside the pass that nothing else hides), and compute that is sigma times slower while traffic
// moves beside it,
//     T1 = C1 + N1 - min(h(N1), C2)        T2 = C2 + N2 - min(h(N2), C1)
//     h(N) = tau N of tensor traffic, N / sigma of other
// and the pair lasts T1 + T2: between the longer of its passes and their sum. Traffic of one pass never
// hides behind its own compute, which needs it, and hiding it gains nothing where the pass waits for copies or
// for its host: h is at most what the pass lasts beyond PassPrice::least().
//   source  DeepSeek-AI, DeepSeek-V3 (arXiv 2412.19437), sections 3.2.1 and 3.2.2: all-to-all and messages
//           are hidden behind the compute of the other pass, at the price of 20 of 132 multiprocessors, which
//           makes compute 1.18 times slower; sigma is the profile's gradient_overlap_slowdown, 1.19 as
//           published for traffic beside compute (arXiv 2507.03114) until it is measured. Tensor traffic
//           loads NVLink and the same multiprocessors as the products beside it: tau is tensor_overlap, the
//           share of it that the profile found to hide behind compute of its own pass.
#pragma once

#include <optional>
#include <vector>

#include "base/units.hpp"
#include "sim/lower/prices.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// Where an order has no such pairs, a forward and a backward of different micro-batches that follow each
// other on a rank may run in the same way, but for exchanges of experts alone: each runs on a stream of its
// own, all else in the stream of compute. Passes without such a neighbour, in warm-up and cool-down, hide
// nothing. Assumed: the neighbour's input is there, for which Megatron-LM warms up with a micro-batch more.
// How much hides is the software's to say (`expert_overlap`), as the two were not cut to fit each other; else
// as above.
//   source  Megatron-LM, megatron/core/pipeline_parallel/combined_1f1b.py
//           (--overlap-moe-expert-parallel-comm)
struct FusedPairRule {
  bool neighbours = false;  // pass by pass: exchanges of experts alone, also where nothing is fused
  std::optional<double> expert_overlap = {};  // [0, 1]: of neighbours' exchanges, in place of 1 / sigma
  std::optional<double> share = {};           // (0, 1]: of the sum of its passes, in place of the above
  double slowdown = 1;                        // sigma, at least 1
  double tensor_overlap = 1;                  // tau, [0, 1]; never more than 1 / sigma counts
};

struct PairTimes {
  Duration first, second;
};

[[nodiscard]] PairTimes fused_pair_times(const PassPrice& first, const PassPrice& second,
                                         const FusedPairRule& rule);

// What a price adds at least to a pass of a pair, whatever runs beside it: a bound from below also where
// several prices make one pass.
[[nodiscard]] Duration least_in_pair(const PassPrice& pass, const FusedPairRule& rule);

// The parts by category of a pass that takes `lasts` of its price in a pair: its traffic is shorter, or where
// a share is given, all of it. They add up to `lasts`.
[[nodiscard]] std::vector<TaskPart> parts_in_pair(const PassPrice& pass, Duration lasts,
                                                  const FusedPairRule& rule);

}  // namespace stagecraft
