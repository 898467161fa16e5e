// Step times when some nodes do the work of others: closed forms over the costs of stages.
//
//   source  docs/resilience.md, section 6: Bamboo (NSDI 2023), ReCycle (SOSP 2024).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// Time of one micro-batch on one stage.
struct StageWork {
  Duration forward{};
  Duration backward{};

  [[nodiscard]] Duration whole() const { return forward + backward; }
  friend bool operator==(const StageWork&, const StageWork&) = default;
};

// One-forward-one-backward with a barrier at its end: Σ w_s + (Nb − 1)·max w_s; of equal stages (Nb + S −
// 1)·w.
//   requires at least one stage, micro_batches >= 1
[[nodiscard]] Duration pipeline_time(std::span<const Duration> stage_times, std::int64_t micro_batches);

// Bamboo: stage s also runs the forward of stage s+1 (the last stage that of stage 0). Only the part that
// exceeds the stage's bubble adds time: w'_s = F_s + B_s + max(0, F_{s+1} − bubble_s). The bubble is that of
// the steady state, (max w) − w_s per micro-batch.
//   returns  w'_s by stage. One stage alone shadows nobody.
[[nodiscard]] std::vector<Duration> redundant_stage_times(std::span<const StageWork> stages);

// Two bounds of ReCycle's extra work. The paper's scheduler lies between them. Both are derived from its
// description and not verified against it.
enum class RecycleForm : std::uint8_t {
  // Extra work fills bubbles first: max_s (n_s·w_s + Σ_{j<s} w_j). The earlier stages run before stage s gets
  // its first micro-batch and after its last gradient: this ramp is unavoidable.
  kLowerBound,
  kUnoptimised,  // no bubble is used: (n + S − 1)·max w, with the n of the stage that lost most nodes
};

// n_s = Nb·ρ/(ρ − f_s), rounded up: the micro-batches of each live worker of stage s when f_s of its ρ
// workers are dead.
struct RecycleShape {
  std::vector<Duration> stage_times;  // w_s, forward and backward
  std::int64_t micro_batches = 1;     // Nb, of each pipeline without failures
  int pipelines = 1;                  // ρ
  // The whole iteration without dead workers, gradients and optimizer included. The forms add the cost of
  // dead workers.
  Duration fault_free{};

  friend bool operator==(const RecycleShape&, const RecycleShape&) = default;
};

// fault_free plus the difference that the form gives for the dead workers; never less than fault_free.
//   dead      f_s by stage
//   requires  0 <= f_s < ρ for all stages
[[nodiscard]] Duration recycle_iteration(const RecycleShape& shape, std::span<const int> dead,
                                         RecycleForm form);

}  // namespace stagecraft
