// Samples of fused attention -> the profile's kernels, by `implementation`: a curve R L / (L + L_half)
// (curve_fits.hpp) for each of forward and backward, causal and dense, from three lengths or more.
//
// Eight samples of a pass with several numbers of heads at a length are enough for its half blocks; with
// several head sizes also for the kernel's half head size. The nearest values of a grid are taken. Samples of
// a long run (load:sustained) next to bursts of the same shape scale the rates to the clock of a long run.
//
// A sample without `implementation` belongs to the kernel in use. PyTorch's backends stand for the kernels
// that they call (pytorch_flash is fa2, pytorch_cudnn is cudnn), where the kernel was not measured itself. If
// all samples are of one kernel, runs use it.
#pragma once

#include "calibrate/fit/profile_draft.hpp"

namespace stagecraft {

// FLOPs that the kernel of a sample does: scores and values forward, two and a half times that backward; half
// of the square under a mask.
[[nodiscard]] double attention_flops(const Sample& sample);

void fit_attention_samples(ProfileDraft& draft);

}  // namespace stagecraft
