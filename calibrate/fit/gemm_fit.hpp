// GEMM times -> the constants of the tile model, and how well they and the table foretell a shape they have
// not seen.
//
//   t = t0 + max( 2 m n k / (peak * e_layout * Q) * exp(-c), bytes / B )
//   Q      tile and wave quantisation (calibrate/profile/tile_model.hpp); tiles of one size share a rate,
//          that of 128 x 256 is 1 and no other is above
//   c      what the rows around say about the formula: sum w r / (sum w + prior), w = exp(-(d/radius)^2), as
//          in models/compute_cost.hpp
//   t0     launch and drain of a call that stands alone; a profile charges host.kernel_gap instead, so t0 is
//          taken out of the rows. Where only the gap is known, it is t0, and a row costs what its sample took
//
// Continuous constants (t0, e by layout, rates of the tiles) are fitted by damped least squares on
// ln(predicted / measured), which does not depend on the size of a shape. Whole numbers (prologue, split-k)
// and the pair (radius, prior) are searched on a small grid.
//
//   source  tile choice with a floor of one wave, the fall of small tiles and the prologue are what the
//           published grids ask for: docs/calibration.md; the constants are fitted here.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "calibrate/fit/fit_errors.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "calibrate/profile/tile_model.hpp"

namespace stagecraft {

// One timed GEMM. Batched ones are fitted apart (fit_batched_efficiency).
struct GemmPoint {
  GemmSize size;
  GemmLayout layout = GemmLayout::kTN;
  double seconds = 0;
  std::string note{};  // comment beside the row in the profile: samples, spread, date
};

// "4096 x 1024, k 4096, NN"
[[nodiscard]] std::string row_name(const GemmPoint& point);

struct GemmDevice {
  int sms = 0;
  FlopRate peak{};               // peak in the precision of the points
  Bandwidth memory_bandwidth{};  // achieved
  double element_bytes = 2;
  // t0 where it is known: 0 under a table of kernel efficiencies. Empty: fitted.
  std::optional<double> launch_seconds{};
};

inline constexpr std::size_t kMinGemmPoints = 12;

struct GemmFit {
  GemmModel model;  // tiles, split-k, layouts, correction and rows, compared with the formula
  double t0_seconds = 0;
  std::vector<GemmPoint> points = {};  // the rows' notes, in their order
  FitErrors formula = {};              // in sample, without correction
  // Each row predicted by continuous constants and a table that have not seen it; the whole numbers, radius
  // and prior have.
  FitErrors left_out = {};
};

// Rows that are mostly launch (t0 above two thirds of their time) are fitted but left out of the table,
// because their efficiency is the small difference of two large numbers. A layout without points takes TN's
// constant.
//
//   requires  at least kMinGemmPoints points, positive times, a shape and layout at most once.
[[nodiscard]] GemmFit fit_gemm(std::vector<GemmPoint> points, const GemmDevice& device,
                               const GemmModel& base);

// Predicted time of any shape; for the tests of monotony.
[[nodiscard]] double predict_seconds(const GemmFit& fit, const GemmDevice& device, const GemmPoint& point);

// Share of peak before quantisation of batched GEMMs: the median of the points.
[[nodiscard]] double fit_batched_efficiency(const GemmModel& model, const GemmDevice& device,
                                            std::span<const GemmPoint> points);

// fp8 over 16 bit: t = t0 + 2 m n k / (peak * e_layout * factor * Q), Q with a prologue of its own, and a
// table of what the formula misses.
struct Fp8Fit {
  double factor = 1, prologue = 0;
  GemmTable table = {};
  std::vector<GemmPoint> points = {};  // the rows' notes, in their order
  FitErrors left_out = {};             // each row predicted by a table without it
};
inline constexpr std::size_t kMinFp8Points = 4;
// The pair with the least mean |ln(formula / measured)| over a grid of prologues, and the table over it, by
// the rules of fit_gemm().
//
//   points    layouts as in GemmModel::fp8_table
//   device    `peak` and `element_bytes` of fp8; t0_seconds that of the 16-bit fit
//   requires  at least kMinFp8Points points, positive times.
[[nodiscard]] Fp8Fit fit_fp8(const GemmModel& model, const GemmDevice& device, double t0_seconds,
                             const std::vector<GemmPoint>& points);

}  // namespace stagecraft
