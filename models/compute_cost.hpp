// Cost of a compute operator on a device.
//
//   GEMM      max(2mnk / (peak * scale * e), bytes / B) + gap, e by the first rule that applies:
//               1. the table has the shape and layout (and speaks for the precision): that row's efficiency;
//               published
//               2. e_layout * Q * exp(sum w_i r_i / (sum w_i + prior)), r_i = ln(row/formula) of the rows of
//               the layout,
//                  w_i = exp(-(d_i/radius)^2), d_i = distance in (ln m, ln n, ln k): interpolated where the
//                  rows outweigh the prior, analytic elsewhere; assumed in a precision that the table does
//                  not speak for (then r = 0)
//                  Where the radius is above 0, the time lies between those of the rows that the shape
//                  holds and of those that hold it (between_rows): the correction varies inside a tile, where
//                  time does not.
//             Q is the tile and wave quantisation (calibrate/profile/tile_model.hpp).
//   batched   max(2mnk * batch / (peak * e_batched * Q), bytes / B) + gap; e_batched falls by the misaligned
//             factor where a dimension is no multiple of 8 (16-byte accesses break)
//   grouped   groups * group gap + hypot(2mnk * groups / (peak * scale * e * grouped factor), bytes / B) +
//             gap; Q over the tiles of all groups
//   memory    bytes / B + gap; a permutation has its own share of the memory bandwidth in place of B's
//   flash     fixed + max(F / (R * L/(L + L_half) * O * H), bytes / B) + gap, by the profile's kernel, pass
//             and mask: F the FLOPs that are done (a causal mask halves the square that the operator counts),
//             L the keys, O = x/(x + x_half) of x = heads * ceil(queries/128) blocks, H = d/(d + d_half) of
//             the head size, O and H relative to the benchmarks of the curves. Where queries and values
//             differ in size (MLA) the backward pads the smaller to the larger. In fp32 the rate is assumed
//             to scale with the peak.
//   B = memory bandwidth * memory efficiency, gap = kernels * kernel gap.
//
//   bound     twice a dimension of a GEMM never costs less.
//   source    the rule of correction is ours; see calibrate/profile/README.md for its leave-one-out error.
//             The forms of flash and of grouped GEMMs: docs/calibration.md, with their errors. In SimuMax's
//             tables heads of 192 against 128 take 1.04 times as long a FLOP as heads of 128 forward (0.91 to
//             1.20) and 1.25 backward (1.18 to 1.31); padding says 1.20.
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

// Rate of a GEMM by the recipe of its scales, over that of fp8 with one a tensor: a constant, and the share of it
// that is left where operands of 4 bits shorten the passes over k, but not the fill of a tile, of p in units of k
// in fp8:
//
//   share = (k + p) / (k + constant p)        nvfp4; else 1
//
//   source  NVIDIA/TransformerEngine @8f2e6357, docs/examples/gemm_profiling/gemm_profiling.rst, B300: nvfp4 over
//           mxfp8 is 1.89 forward (k of 4,096 and 16,384), 1.84 and, at k = 15,872, 1.99; with p = 500 and one
//           constant 1.89, 1.92 and 1.99.
struct RecipeRate {
  const Sourced<double>* constant = nullptr;  // nullptr: one a tensor, or not fp8
  double share = 1;

  [[nodiscard]] double value() const { return constant == nullptr ? 1 : constant->value * share; }
};
[[nodiscard]] RecipeRate recipe_rate(const HardwareProfile& profile, Precision precision, const Op& op);

// `precision` applies to GEMMs without one of their own. throws InternalError for a collective, which
// topology/ prices; for an empty GEMM or attention core; for a precision without a peak.
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
