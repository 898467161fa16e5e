// Cost of an operator, down to the rows and constants of the profile.
#pragma once

#include "calibrate/profile/hardware_profile.hpp"
#include "models/operators.hpp"
#include "sim/explain/explanation.hpp"

namespace stagecraft {

// Its value is compute_cost(). GEMMs and memory-bound operators have a formula, max(work / rate, bytes /
// rate) and the gaps between kernels; the others have a text. requires no collective.
[[nodiscard]] Explanation explain_operator(const HardwareProfile& profile, Precision precision, const Op& op);

}  // namespace stagecraft
