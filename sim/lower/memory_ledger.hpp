// Memory ledger of a GPU: one itemised row per pipeline rank, and the verdict.
//
//   allocated   weights, gradients, optimizer, activations and buffers: the allocator's high water
//   reserved    allocated and what the allocator cannot use (fragmentation)
//   peak        reserved, CUDA context and NCCL's communicators: what the device shows, and what has to fit
//   fits        up to 80 % of the capacity; tight above it; out-of-memory above the capacity
//   host        what is offloaded, of all GPUs of a node, against the memory of the node: the same rule
//   source  80 % rule: Fujii et al. (arXiv 2411.06465); states by ZeRO stage: Rajbhandari et al. (arXiv
//           1910.02054), section 5, and Megatron-LM's distributed-optimizer table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/model_spec.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Above this share of the capacity no estimate is safe (Fujii et al.: no run below it ran out of memory).
inline constexpr double kTightShare = 0.8;

enum class Verdict : std::uint8_t { kFits, kTight, kOutOfMemory };
[[nodiscard]] constexpr std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"fits", "tight", "out-of-memory"};
  return kNames.at(static_cast<std::size_t>(verdict));
}
// The verdict of `peak` on a device of `capacity`; capacity 0 means "not given" and always fits.
[[nodiscard]] Verdict verdict_of(Bytes peak, Bytes capacity);

// Bytes that the GPUs of one node keep in host memory, and its capacity.
struct HostMemory {
  Bytes used, capacity;  // capacity 0: not given
  [[nodiscard]] Verdict verdict() const { return verdict_of(used, capacity); }
  friend bool operator==(const HostMemory&, const HostMemory&) = default;
};

enum class MemoryClass : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizer,
  kActivations,  // at the peak of the schedule
  kBuffers,      // receive buffers, gathered inputs, temporaries
  kOverhead,     // fragmentation, context, communicators
};
inline constexpr std::array kMemoryClasses = {MemoryClass::kWeights,   MemoryClass::kGradients,
                                              MemoryClass::kOptimizer, MemoryClass::kActivations,
                                              MemoryClass::kBuffers,   MemoryClass::kOverhead};
[[nodiscard]] constexpr std::string_view name_of(MemoryClass kind) {
  constexpr std::array<std::string_view, kMemoryClasses.size()> kNames = {
      "weights", "gradients", "optimizer", "activations", "buffers", "overhead"};
  return kNames.at(static_cast<std::size_t>(kind));
}

struct MemoryItem {
  MemoryClass kind = MemoryClass::kWeights;
  std::string name;
  Bytes size;
  friend bool operator==(const MemoryItem&, const MemoryItem&) = default;
};

// Moment of a rank's memory peak.
struct PeakMoment {
  std::optional<Action> action;  // the pass that is running; absent: the optimizer step
  std::int64_t in_flight = 0;    // micro-batches (of one chunk) whose activations are held
  std::optional<Duration> time;  // when that pass starts; known after a simulation
  friend bool operator==(const PeakMoment&, const PeakMoment&) = default;
};

using MemorySums = std::array<Bytes, kMemoryClasses.size()>;  // by MemoryClass

struct StageMemory {
  int stage = 0;                       // pipeline rank
  MemorySums sums{};                   // at the peak
  Bytes fragmentation = {};            // part of the overhead: reserved by the allocator and unusable
  Bytes on_host = {};                  // bytes per GPU that `offload` keeps in host memory
  std::vector<MemoryItem> items = {};  // add up to the classes, to the byte
  PeakMoment moment = {};
  // At any moment of the passes, without what they hold for themselves; and in the optimizer step. Without
  // overhead, which is that of the peak.
  MemorySums beside_passes{}, in_step{};

  [[nodiscard]] Bytes of(MemoryClass kind) const { return sums[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Bytes peak() const { return std::accumulate(sums.begin(), sums.end(), Bytes(0)); }
  [[nodiscard]] Bytes allocated() const { return peak() - of(MemoryClass::kOverhead); }
  [[nodiscard]] Bytes reserved() const { return allocated() + fragmentation; }
};

struct MemoryLedger {
  Bytes capacity;
  std::vector<StageMemory> stages;
  HostMemory host = {};  // of the fullest node

  [[nodiscard]] const StageMemory& heaviest() const;  // the first of equals
  [[nodiscard]] Verdict verdict() const;              // the worse of the GPUs' and the hosts'
  // The rule behind the verdict, with its figures: "reserved + context + NCCL: 61.2 GiB, over 80 % of 79.1
  // GiB".
  [[nodiscard]] std::string rule() const;
  // The shortage, where there is one: "stage 3 needs 92.1 GiB of 79.1 GiB".
  [[nodiscard]] std::string shortage() const;
};

struct LedgerRequest {
  const PricingRequest& job;
  const Schedule& schedule;
  const HardwareProfile& profile;
  // For callers that need only the verdict: the ledger ends with the first rank that runs out of memory, and
  // has sums without items.
  bool until_over = false;
};
[[nodiscard]] MemoryLedger transformer_ledger(const TransformerSpec& model, const LedgerRequest& request);
// Abstract stages: activations in flight and gradients only; capacity 0 means "not given" and always fits.
[[nodiscard]] MemoryLedger stages_ledger(const StagesSpec& model, const ParallelPlan& plan,
                                         const Schedule& schedule, Bytes capacity);

}  // namespace stagecraft
