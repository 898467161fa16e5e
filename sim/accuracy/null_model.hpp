// The least that a simulator must beat: all FLOPs at one rate.
//
//   time   FLOPs / (GPUs * E), without communication; E is the median fit on the very rows that are scored.
//   bubble the same times 1 + (p - 1) / (m v): the pipeline's idle share in closed form.
//   FLOPs  those that the hardware does: recompute, grouped queries and gated layers counted.
#pragma once

#include <span>
#include <vector>

namespace stagecraft {

struct NullRow {
  double flops = 0;     // per GPU and iteration
  double bubble = 1;    // factor on the time, 1 without a pipeline
  double measured = 0;  // seconds
};

struct NullModel {
  double rate = 0;             // E, FLOP/s per GPU
  std::vector<double> errors;  // predicted / measured - 1, a row each
};

// 1 + (p - 1) / (m v), a third of the bubble where the backward is split to fill it (zb-h1 and its kin).
[[nodiscard]] double null_bubble(int stages, int micro_batches, int chunks, bool split_backward);

// Empty of no rows, or where FLOPs are not known (abstract stages).
[[nodiscard]] NullModel fit_null_model(std::span<const NullRow> rows, bool with_bubble);

}  // namespace stagecraft
