// What the memory-bound kernels have in common: one point on its way, and how its error is gathered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_bench.hpp"
#include "calibrate/bench/kernels_shapes.hpp"
#include "calibrate/bench/kernels_unfused.hpp"

namespace stagecraft {

inline constexpr double kBf16Unit = 0x1p-8;
inline constexpr double kFp32Unit = 0x1p-24;
// Partial sums of columns add up to this many terms one after the other (fused_rows.cu: rows over blocks,
// then blocks over 32 threads).
inline constexpr int kColumnRoundings = 256;

// The largest of the errors at `places`.
template <class Places, class Error>
[[nodiscard]] double worst_of(const Places& places, const Error& error) {
  double worst = 0;
  for (const auto& place : places) worst = std::max(worst, error(place));
  return worst;
}

// Shape by name, form, and what every operator needs.
struct KernelPoint {
  const Sample& sample;
  const KernelOp& op;
  Bench bench;

  [[nodiscard]] std::int64_t extent(const char* name) const { return sample.shape.at(name); }
  [[nodiscard]] bool fused() const { return sample.tags.at("variant") == "fused"; }
  [[nodiscard]] Rows rows() const { return {extent("tokens"), extent("hidden")}; }
  void need_scratch(std::int64_t elements) {
    if (!fused()) scratch_data = bench.room<std::uint8_t>(unfused::scratch_bytes(elements));
  }
  [[nodiscard]] Measured finish(double worst, const Enqueue& enqueue) {
    return bench.finish(sample.op, worst, enqueue, fused() ? 2 : op.unfused_launches);
  }
  // bf16 output: rounded once when fused, `roundings` times as a chain.
  [[nodiscard]] reference::Precision bf16(int roundings) const {
    return {.unit = kBf16Unit, .roundings = fused() ? 1 : roundings};
  }

  // Of sampled rows, of which `wanted(r)` says what they should be.
  template <class T, class Wanted>
  [[nodiscard]] double worst_row(const T* got, Rows rows, const reference::Precision& precision,
                                 const Wanted& wanted) const {
    return worst_of(Bench::sampled(rows.tokens), [&](std::int64_t r) {
      return reference::worst(bench.row(got, r, rows.hidden), wanted(r), precision);
    });
  }

  void* scratch_data = nullptr;
};

[[nodiscard]] inline std::vector<std::int32_t> random_integers(std::int64_t count, std::int32_t limit) {
  std::mt19937 generator(7);  // the same everywhere by its definition; distributions are not
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (auto& v : values) v = static_cast<std::int32_t>(generator() % static_cast<std::uint32_t>(limit));
  return values;
}

struct KernelRunner {
  std::string_view op;
  Measured (*run)(KernelPoint&);
};
[[nodiscard]] std::span<const KernelRunner> row_runners();            // kernels_rows.cpp
[[nodiscard]] std::span<const KernelRunner> loss_and_adam_runners();  // kernels_loss_adam.cpp
[[nodiscard]] std::span<const KernelRunner> move_runners();           // kernels_moves.cpp

}  // namespace stagecraft
