// What a run tells: pure functions of the plan, the program and its timeline.
//
//   MFU   model FLOPs / (iteration time * GPUs * peak); HFU counts what is recomputed as well.
//   Breakdown: passes as the busiest rank spends them; exposed communication and the tail as the critical
//   path has them; the bubble is what remains of the iteration. The parts add up to the iteration time, to
//   the nanosecond.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "sim/engine/engine.hpp"
#include "sim/lower/category.hpp"
#include "sim/lower/memory_ledger.hpp"
#include "sim/lower/offload_price.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// The bubble of the pipelined passes alone, without the tail of the iteration.
struct Bubble {
  Duration ideal{};       // work of the busiest rank
  Duration makespan{};    // from 0 to the last end of a pass on any rank
  Duration span{};        // the longest any rank takes from its first start to its last end
  double over_ideal = 0;  // (makespan - ideal) / ideal
  double fraction = 0;    // idle share of ranks * makespan

  friend bool operator==(const Bubble&, const Bubble&) = default;
};

// What the critical path does, by the name of its tasks ("F", "send forward", "gradient reduction"), longest
// first.
struct PathShare {
  std::string name;
  int tasks = 0;
  Duration time{};

  friend bool operator==(const PathShare&, const PathShare&) = default;
};

struct Report {
  std::string scenario;  // the path as given
  std::string name;
  std::string headline;  // "tp 8 · pp 8 · dp 16 · interleaved-1f1b x2"
  int gpus = 0;
  std::int64_t samples = 0;  // per iteration
  std::int64_t tokens = 0;   // per iteration
  Duration iteration_time{};
  std::array<Duration, 2> interval_90{};
  Flops model_flops{}, hardware_flops{};
  FlopRate peak{};  // of one GPU in the precision used; 0 for abstract stages
  Bubble bubble;
  std::array<Duration, kCategoryCount> breakdown{};
  std::vector<PathShare> critical_path;
  MemoryLedger memory;
  OffloadPrice offload{};              // unused unless the scenario keeps something in host memory
  std::array<double, 5> provenance{};  // shares of compute and communication time
  std::int64_t tasks = 0;
  int simulated_ranks = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> assumptions;  // defaults and assumed constants that mattered
  std::string profile;                   // name and date of the profile
  std::string timeline_hash;

  // All rates are 0 when the iteration takes no time.
  [[nodiscard]] double samples_per_s() const;
  [[nodiscard]] double tokens_per_s() const;
  [[nodiscard]] double model_flops_per_gpu_s() const;  // FLOP/s per GPU
  [[nodiscard]] double hardware_flops_per_gpu_s() const;
  [[nodiscard]] double mfu() const;  // 0 without a peak
  [[nodiscard]] double hfu() const;
};

// Tasks on the compute streams with a stage are passes; everything else is not.
[[nodiscard]] Bubble measure_bubble(const Program& program, const Timeline& timeline);

// Tasks from time 0 to the last end, each starting when the one before ends; deterministic among equals
// (lowest id).
[[nodiscard]] std::vector<TaskId> critical_path(const Program& program, const Timeline& timeline);

// The tasks of the critical path summed by name; the times add up to the iteration.
[[nodiscard]] std::vector<PathShare> measure_critical_path(const Program& program, const Timeline& timeline);

[[nodiscard]] std::array<Duration, kCategoryCount> measure_breakdown(const Program& program,
                                                                     const Timeline& timeline);

// One document on one line (contract section 3.1).
[[nodiscard]] std::string render_json(const Report& report);
// The `memory` object of that document, as one value.
void write_memory(JsonWriter& json, const MemoryLedger& memory);
// For people, 80 columns; `verbose` adds assumptions and formulas.
[[nodiscard]] std::string render_text(const Report& report, bool verbose);
// The memory ledger as bars.
[[nodiscard]] std::string render_memory_text(const Report& report);

}  // namespace stagecraft
