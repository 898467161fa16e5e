// Utilisation of the device by a GEMM: the tile and wave quantisation that makes thin shapes expensive.
//
// A library cuts C[m, n] into tiles, one per SM at a time. The last wave is rarely full, edge tiles are
// padded, and every tile has a prologue. Split-k cuts the sum into z slices that run in parallel and are
// added afterwards.
//
//   waves = ceil(ceil(m/t_m) * ceil(n/t_n) * batch * z / SMs)
//   cost  = waves * t_m * t_n * (depth + prologue) / rate  [+ prologue * m * n * z / SMs if z > 1]
//   prologue  that of the precision: GemmModel::prologue()
//   depth = k if z = 1, else max(k/z, split_k_min_depth); z = 1 only when batched
//   Q     = (m * n * k * batch / SMs) / cost of the cheapest (tile, z)
//
//   bound   0 < Q <= 1. Twice a dimension never costs less: every term grows with m, n, k and batch, which is
//           why a slice that is too shallow is charged the minimum depth and not forbidden.
//   source  tile and wave quantisation: NVIDIA, "Matrix Multiplication Background User's Guide"; the tile
//           rates and the 50 of the prologue are the profile's.
#pragma once

#include <cstdint>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

struct GemmSize {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
};

// throws InternalError when a dimension, `sms` or the list of tiles is empty.
[[nodiscard]] double tile_quantisation(const GemmModel& model, int sms, const GemmSize& size,
                                       Precision precision = Precision::kBf16);

// efficiency(layout) * Q, times the factor of fp8 there.
[[nodiscard]] double formula_efficiency(const GemmModel& model, int sms, GemmLayout layout,
                                        const GemmSize& size, Precision precision);

// Fills log_ratio of every row: ln(row / formula_efficiency). load_profile() calls it; call it again after a
// change of rows, tiles or layout efficiencies.
void compare_with_formula(GemmModel& model, int sms);

// The table of the model that speaks for a precision; nullptr where none does.
[[nodiscard]] const GemmTable* table_of(const GemmModel& model, Precision precision);

// How the table rows around a shape correct the formula: by the factor exp(sum w ln(row/formula) / (sum w +
// prior)), w = exp(-(distance/radius)^2) with the distance in (ln m, ln n, ln k). A row of exactly this shape
// is excluded, so that a fit can test the others against it.
struct TablePull {
  double weight = 0;                                // sum w
  double pull = 0;                                  // sum w ln(row/formula)
  [[nodiscard]] double factor(double prior) const;  // 1 where there are no rows
};
[[nodiscard]] TablePull table_pull(const GemmTable& table, GemmLayout layout, const GemmSize& size);

// The efficiency at which a shape takes at least as long as every row that it holds (no larger in any
// dimension), and at most as long as every row that holds it; `efficiency` where that is so already. Where
// rows contradict each other, the middle of the three times: of times that grow with the size, the middle one
// does too.
[[nodiscard]] double between_rows(const GemmTable& table, GemmLayout layout, const GemmSize& size,
                                  double efficiency);

}  // namespace stagecraft
