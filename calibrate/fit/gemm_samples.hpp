// Samples of GEMMs -> the profile's `gemm` section; each line needs the one before:
//
//   table        burst, cold, unbatched, in the precision with most samples (bf16 on a tie) -> layouts,
//                tiles, split-k, correction, rows (gemm_fit.hpp); products of a training run (load:training)
//                in their place where there is no burst
//   batched      -> batched_efficiency over that model, median
//   sustained    beside a burst of the same shape -> scale, median ratio; those of the mix of a layer where it
//                was measured; without any, a base's scale below 1 stays
//   e4m3, e5m2   -> fp8_factor, fp8_prologue over that model, fp8_table; those of long runs beside bursts ->
//                fp8_scale
#pragma once

#include <optional>

#include "calibrate/fit/profile_draft.hpp"

namespace stagecraft {

// Returns the seconds of launch and drain in a burst that were taken out of the table; empty where there is
// none. Where no launch was timed, it is not known how much of one a busy stream hides: the profile's gap is
// taken out, which every GEMM is charged.
std::optional<double> fit_gemm_samples(ProfileDraft& draft, bool launch_was_timed);

// Lists bursts whose clock was held by power or heat: they are no points of the burst fit.
void tell_limited_gemms(ProfileDraft& draft);

}  // namespace stagecraft
