// Samples of fused attention -> the profile's kernels, by `implementation`: a curve R L / (L + L_half)
// (curve_fits.hpp) for each of forward and backward, causal and dense, from three lengths or more.
//
// From eight samples of a pass come its half blocks, and where they are of several head sizes, the kernel's half
// head size: those of a grid that are nearest. Samples of a long run (load:sustained) beside bursts of the same
// shape take the rates to the clock of a long run.
//
// A sample without `implementation` is of the kernel in use. PyTorch's backends are the kernels that they call
// (pytorch_flash is fa2, pytorch_cudnn is cudnn), which speak where the kernel was not measured by itself. Where
// the samples are of one kernel, a run takes that one.
#pragma once

#include "calibrate/fit/profile_draft.hpp"

namespace stagecraft {

// FLOPs that the kernel of a sample does: scores and values forward, two and a half times that backward; half
// of the square under a mask.
[[nodiscard]] double attention_flops(const Sample& sample);

void fit_attention_samples(ProfileDraft& draft);

}  // namespace stagecraft
