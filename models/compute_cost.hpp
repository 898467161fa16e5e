// What a compute operator costs on a device.
//
//   GEMM      max(2mnk / (peak * scale * e), bytes / B) + gap, e by the first rule that applies:
//               1. the table has the shape and layout (and speaks for the precision): that row's efficiency;
//               published
//               2. e_layout * Q * exp(sum w_i r_i / (sum w_i + prior)), r_i = ln(row/formula) of the rows of
//               the layout,
//                  w_i = exp(-(d_i/radius)^2), d_i = distance in (ln m, ln n, ln k): interpolated where the
//                  rows outweigh the prior, analytic elsewhere; assumed in a precision that the table does
//                  not speak for (then r = 0)
//             Q is the tile and wave quantisation (calibrate/profile/tile_model.hpp).
//   batched   max(2mnk * batch / (peak * e_batched * Q), bytes / B) + gap; e_batched falls by the misaligned
//   factor where
//             a dimension is no multiple of 8 (16-byte accesses break)
//   memory    bytes / B + gap
//   flash     FLOPs of the full square / rate + gap; the rate is that of 16 bit, and scales with the peak in
//   fp32 (assumed) with B = memory bandwidth * memory efficiency, gap = kernels * kernel gap.
//
//   bound     twice a dimension of a GEMM never costs less.
//   source    the rule of correction is ours; see calibrate/profile/README.md for its leave-one-out error.
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

// throws InternalError for a collective, which topology/ prices; for an empty GEMM; for a precision without a
// peak.
[[nodiscard]] Cost compute_cost(const HardwareProfile& profile, Precision precision, const Op& op);

// The share of (peak * scale) that an unbatched GEMM reaches, and by which rule. Exposed for tests and
// `explain`.
struct GemmEfficiency {
  double value = 0;
  Provenance provenance = Provenance::kAnalytic;
};
[[nodiscard]] GemmEfficiency gemm_efficiency(const HardwareProfile& profile, Precision precision,
                                             const GemmShape& shape);

}  // namespace stagecraft
