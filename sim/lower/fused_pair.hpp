// Durations of the two passes of a fused pair: a forward overlaps the backward of another micro-batch, as in
// DualPipe.
//
// The two passes are cut into pieces that alternate, so that traffic of one overlaps compute of the other.
// C1, C2: compute time of the passes. N1, N2: their tensor, context and expert traffic that is exposed inside
// the pass. Compute is sigma times slower while traffic overlaps it. Then
//     T1 = C1 + N1 - min(h(N1), C2)        T2 = C2 + N2 - min(h(N2), C1)
//     h(N) = tau N of tensor traffic, N / sigma of other
// The pair lasts T1 + T2, between the longer of its passes and their sum. Traffic of a pass never hides
// behind the pass's own compute, which depends on it. Hiding gains nothing where the pass waits for copies or
// for its host: h is at most the time of the pass above PassPrice::least(), and what layers have above theirs.
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

// In schedules without fused pairs, neighbouring forwards and backwards of different micro-batches may
// overlap in the same way, but only their expert exchanges: these run on a stream of their own, everything
// else on the compute stream. Passes without such a neighbour, in warm-up and cool-down, hide nothing.
// Assumed: the neighbour's input has arrived; Megatron-LM warms up with one more micro-batch for it. The
// passes were not cut to fit each other, so the hidden fraction is a constant of the software
// (`expert_overlap`); otherwise, and where the iteration is one CUDA graph, the formula above holds.
//   source  Megatron-LM, megatron/core/pipeline_parallel/combined_1f1b.py
//           (--overlap-moe-expert-parallel-comm)
struct FusedPairRule {
  bool neighbours = false;  // overlap expert exchanges of neighbouring passes, also where nothing is fused
  // [0, 1]: hidden fraction of neighbours' exchanges, in place of 1 / sigma
  std::optional<double> expert_overlap = {};
  // (0, 1]: duration of the pair as a fraction of the sum of its passes, in place of the above
  std::optional<double> share = {};
  double slowdown = 1;        // sigma, at least 1
  double tensor_overlap = 1;  // tau, [0, 1]; never more than 1 / sigma counts
};

struct PairTimes {
  Duration first, second;
};

// Each pass has the rule of its stage, whose devices may be others; a share is the same in both.
[[nodiscard]] PairTimes fused_pair_times(const PassPrice& first, const FusedPairRule& of_first,
                                         const PassPrice& second, const FusedPairRule& of_second);

// Lower bound of the time that a price adds to a pass of a pair, also where several prices make one pass.
[[nodiscard]] Duration least_in_pair(const PassPrice& pass, const FusedPairRule& rule);

// The parts by category of a pass that lasts `lasts` in a pair. Only its traffic is shortened, or every part
// where a share is given. The parts add up to `lasts`.
[[nodiscard]] std::vector<TaskPart> parts_in_pair(const PassPrice& pass, Duration lasts,
                                                  const FusedPairRule& rule);

}  // namespace stagecraft
