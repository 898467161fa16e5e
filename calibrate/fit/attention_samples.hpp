// Samples of fused attention -> the profile's kernels, by `implementation`: a curve R L / (L + L_half)
// (curve_fits.hpp) for each of forward and backward, causal and dense, from three lengths or more.
//
// A sample without `implementation` is of the kernel in use. Where the samples are of one kernel, a run takes
// that one.
#pragma once

#include "calibrate/fit/profile_draft.hpp"

namespace stagecraft {

// FLOPs that the kernel of a sample does: scores and values forward, two and a half times that backward; half
// of the square under a mask.
[[nodiscard]] double attention_flops(const Sample& sample);

void fit_attention_samples(ProfileDraft& draft);

}  // namespace stagecraft
