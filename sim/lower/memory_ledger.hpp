// Who takes the memory of a GPU: one row per pipeline rank, and the verdict.
//
//   fits           up to 80 % of the capacity; tight above it; out-of-memory above the capacity.
//   source  80 % rule: Fujii et al. (arXiv 2411.06465).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/model_spec.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Above this share of the capacity no estimate is safe (Fujii et al.: no run below it ran out of memory).
inline constexpr double kTightShare = 0.8;

enum class Verdict : std::uint8_t { kFits, kTight, kOutOfMemory };
inline constexpr std::string_view kVerdictNames[] = {"fits", "tight", "out-of-memory"};

struct StageMemory {
  int stage = 0;  // pipeline rank
  Bytes weights, gradients, optimizer;
  Bytes activations;  // at the peak of the schedule
  Bytes buffers;      // receive buffers, gathered inputs, temporaries
  Bytes overhead;     // context, communicators, workspace, fragmentation
  [[nodiscard]] Bytes peak() const {
    return weights + gradients + optimizer + activations + buffers + overhead;
  }
};

struct MemoryLedger {
  Bytes capacity;
  std::vector<StageMemory> stages;

  [[nodiscard]] const StageMemory& heaviest() const;  // the first of equals
  [[nodiscard]] Verdict verdict() const;
};

struct LedgerRequest {
  const Shard& shard;
  const ParallelPlan& plan;
  int zero_stage = 0;
  const Schedule& schedule;
  const HardwareProfile& profile;
};
[[nodiscard]] MemoryLedger transformer_ledger(const TransformerSpec& model, const LedgerRequest& request);
// Abstract stages: activations in flight and gradients only; capacity 0 means "not given" and always fits.
[[nodiscard]] MemoryLedger stages_ledger(const StagesSpec& model, const ParallelPlan& plan,
                                         const Schedule& schedule, Bytes capacity);

}  // namespace stagecraft
