// Samples of one device -> its profile.
//
// Values with samples are measured; all others stay as in the base profile, with the base's provenance and
// source. A table has one origin: GEMM samples replace the base's table, collective samples the base's rows
// of their group. Nothing is blended. The base's residuals, which say how well it was scored, become assumed.
//
//   gemm         bf16 or fp16 -> layouts, tiles, split-k, correction, table, batched_efficiency, scale; e4m3
//                and e5m2 beside them -> fp8_factor, fp8_prologue (gemm_samples.hpp says from which); a burst
//                whose clock was held (seen_clock:limited) is left out, and listed
//   system       an empty kernel in a busy stream, and what products take beyond one alone -> kernel gap
//   interference products beside 16 to 24 multiprocessors that copy and add, over the same alone -> overlap
//                slowdown of gradients and fused pairs (median)
//   kernel       fused and cold -> memory_efficiency: median over operators of their fitted rate
//   attention    by `implementation`: each pass, causal and dense apart -> R and L_half of that pass of that
//                kernel, its half blocks and half head size where there are samples enough, all at the clock of
//                a long run where one was measured (attention_samples.hpp)
//                (kernel, attention: samples of a training run where the family has none of a benchmark)
//   nccl         one fit per (collective, ranks, nodes, algorithm)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "calibrate/fit/fit_errors.hpp"
#include "calibrate/fit/sample_set.hpp"
#include "calibrate/fit/write_profile.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

// Result of one family of samples.
struct FamilyFit {
  std::string family;   // "gemm", "all-reduce, 8 ranks, 1 node"
  std::string outcome;  // one line: the constants, or why none could be fitted
  FitErrors left_out;
};

struct FittedProfile {
  HardwareProfile profile;
  ProfileRemarks remarks;
  std::vector<FamilyFit> families;
  std::size_t unused = 0;          // samples that no constant of a profile asks for
  std::vector<Diagnostic> doubts;  // samples that a table holds, and that look like slips
};

// Reports and returns nullopt when the samples are of another device than the base (its facts would be
// wrong), or when nothing of the profile can be fitted from them. Warns of doubtful samples.
[[nodiscard]] std::optional<FittedProfile> fit_profile(const SampleSet& samples, const HardwareProfile& base,
                                                       const std::string& name, Diagnostics& diagnostics);

// The profile as a file, with the errors of its fits in the sources.
[[nodiscard]] std::string to_yaml(const FittedProfile& fitted);

}  // namespace stagecraft
