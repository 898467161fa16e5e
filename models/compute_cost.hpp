// What a compute operator costs on a device.
//
//   GEMM      max(2mnk / (peak * scale * e_layout * Q), bytes / B) + gap, Q = tile and wave quantisation over the profile's
//             tiles and split-k. A row of the profile's table of the same layout decides where it stands; near rows pull the
//             formula by exp(weighted mean of ln(row/formula)), weights falling with the distance in (ln m, ln n, ln k).
//   memory    bytes / (B * efficiency) + gap per kernel
//   flash     FLOPs of the full square / rate
//
// Pure: the same operator costs the same, always.
#pragma once

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/operators.hpp"

namespace stagecraft {

struct Cost {
  Duration time{};
  double relative_spread = 0;  // one standard deviation
  Provenance provenance = Provenance::kAnalytic;
};

// throws InternalError for a collective, which topology/ prices.
[[nodiscard]] Cost compute_cost(const HardwareProfile& profile, Precision precision, const Op& op);

// Quantisation Q in (0, 1] of the tile model: useful share of the best tile choice. Exposed for tests.
[[nodiscard]] double tile_quantisation(const GemmModel& model, int sms, const GemmShape& shape);

}  // namespace stagecraft
