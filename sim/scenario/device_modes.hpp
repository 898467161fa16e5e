// The devices of a scenario, and the modes of computing that they have.
#pragma once

#include <vector>

#include "base/diagnostic.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// One profile per node group where they differ, otherwise the scenario's own; none for abstract stages
// without one.
[[nodiscard]] std::vector<const HardwareProfile*> profiles_of(const Scenario& scenario);

// Is a rate known, on all devices, of the model's attention in fp8? cuDNN refuses windows and sinks, or computes the
// whole square for them; unfused attention is in 16 bit.
//   source  NVIDIA/TransformerEngine @002a3e57, dot_product_attention/utils.py; NVIDIA/cudnn-frontend @07b111f1,
//           benchmark/attention_training/results/gpt_oss: the backward of a window takes as long as without
[[nodiscard]] bool can_attend_in_fp8(const Scenario& scenario, const TransformerSpec& model,
                                     Fp8Attention attention);

// Reports a precision, a recipe of fp8 or attention in fp8 that some device lacks.
void check_device_modes(const Scenario& scenario, Diagnostics& diagnostics);

}  // namespace stagecraft
