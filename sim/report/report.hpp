// The report of a run, as plain values and as documents (sim/report/measure.hpp finds most of them in a timeline).
//
//   MFU   model FLOPs / (iteration time * GPUs * peak); HFU counts what is recomputed as well.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "calibrate/profile/provenance.hpp"
#include "sim/lower/category.hpp"
#include "sim/lower/memory_ledger.hpp"
#include "sim/lower/offload_price.hpp"

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

// Time on the critical path by name of the tasks ("F", "send forward", "gradient reduction"), longest first.
struct PathShare {
  std::string name;
  int tasks = 0;
  Duration time{};

  friend bool operator==(const PathShare&, const PathShare&) = default;
};

// A shape of GEMMs or of flash attention, and what its price rests on.
struct ShapeReport {
  std::string shape;  // "2048 x 6144 x 12288 TN bf16", "flash forward 12 x 2048 x 2048 of 128"
  Provenance provenance = Provenance::kAssumed;
  double share = 0;  // of the time of all shapes

  friend bool operator==(const ShapeReport&, const ShapeReport&) = default;
};

// A link that flows share, or several links with identical flows.
struct LinkReport {
  std::string name;  // name of the first link
  int alike = 1;
  Bandwidth capacity{};  // capacity of each link for training; the figures below also count per link
  double bytes = 0;
  double utilisation = 0;  // bytes over capacity times iteration time
  Duration busy{}, saturated{};
  // Time lost by transfers because this link was their bottleneck, summed over them; of one that only partly
  // crosses it, that part.
  Duration delay{};

  friend bool operator==(const LinkReport&, const LinkReport&) = default;
};

// Two kinds of traffic that were on a link together while it was full. Passes stand for the collectives in
// them.
struct MeetingReport {
  std::string link;  // name of the first of its kind
  std::string first, second;
  Duration time{};  // time with at least one flow of each label on the full link

  friend bool operator==(const MeetingReport&, const MeetingReport&) = default;
};

// Another job on the same fabric.
struct OtherJobReport {
  std::string name;
  std::string nodes;            // "16-31"
  Duration alone_time{};        // time of its iteration without other jobs
  Duration shared_time{};       // the mean of those that ended during ours; 0 where none did
  std::int64_t iterations = 0;  // completed iterations
  Duration cost{};              // extra time of our iteration beside this job alone

  friend bool operator==(const OtherJobReport&, const OtherJobReport&) = default;
};

// Our job's iterations one after the other while the others repeat theirs, the first from time 0.
struct RepeatedReport {
  std::int64_t iterations = 0;
  Duration mean{}, least{}, most{};

  friend bool operator==(const RepeatedReport&, const RepeatedReport&) = default;
};

// Effect of a shared network on an iteration.
struct NetworkReport {
  bool shared = false;
  Duration idle_time{};                 // time of the same iteration without sharing
  std::vector<LinkReport> links;        // most delay first, then most used
  std::vector<MeetingReport> meetings;  // longest first
  // Time of the same iteration without the other jobs, where there are any.
  std::optional<Duration> alone_time{};
  std::vector<OtherJobReport> jobs{};        // as the scenario lists them
  std::optional<RepeatedReport> repeated{};  // set where more than one iteration was requested

  friend bool operator==(const NetworkReport&, const NetworkReport&) = default;
};

// A rank that stands still for good.
struct StalledRank {
  std::string rank;         // "pipeline 2, data 0"
  Duration since{};         // idle; of one that is stuck: the start of its task, or its death before it
  std::string task;         // the first that does not end
  bool stuck = false;       // it is dead, or its task waits for nobody else
  bool begun = false;       // its task began
  std::string waits_for{};  // the stuck task at the end of its chain of waits
  std::string waits_for_rank{};

  friend bool operator==(const StalledRank&, const StalledRank&) = default;
};

// Faults inside the iteration.
struct FaultReport {
  std::vector<std::string> faults;  // "2 s: node 3 dies", as given
  Duration without{};               // the same iteration without them
  std::optional<Duration> stall{};  // time of the stall, after which the iteration makes no progress
  std::vector<StalledRank> ranks{};

  friend bool operator==(const FaultReport&, const FaultReport&) = default;
};

struct Report {
  std::string scenario;  // the path as given
  std::string name;
  std::string headline;  // "tp 8 · sp · pp 8 · dp 16 · mb 2 · interleaved-1f1b x2 · recompute full"
  int gpus = 0;
  std::int64_t samples = 0;   // per iteration
  std::int64_t tokens = 0;    // per iteration
  Duration iteration_time{};  // up to the stall where the iteration does not finish
  std::array<Duration, 2> interval_90{};
  Flops model_flops{}, hardware_flops{};
  FlopRate peak{};  // peak of one GPU in the precision used; 0 for abstract stages
  Bubble bubble;
  Breakdown breakdown{};
  std::vector<PathShare> critical_path;
  MemoryLedger memory;
  NetworkReport network{};  // not shared where the network is closed-form
  std::optional<FaultReport> faults{};
  OffloadPrice offload{};             // unused unless the scenario keeps something in host memory
  ByProvenance provenance{};          // shares of compute and communication time
  std::vector<ShapeReport> shapes{};  // dearest first; none of abstract stages
  std::int64_t tasks = 0;
  int simulated_ranks = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> assumptions;  // defaults and assumed constants that mattered
  std::string profile;                   // name and date of the profile
  std::string software;                  // the preset that the job is taken to run
  bool software_is_assumed = false;      // it is the profile's, as the scenario names none
  bool graphs_may_help = false;          // its host launches operator by operator, outside of CUDA graphs
  std::string timeline_hash;

  [[nodiscard]] bool finishes() const { return !faults || !faults->stall; }
  // All rates are 0 when the iteration takes no time, or for ever.
  [[nodiscard]] double samples_per_s() const;
  [[nodiscard]] double tokens_per_s() const;
  [[nodiscard]] double model_flops_per_gpu_s() const;  // FLOP/s per GPU
  [[nodiscard]] double hardware_flops_per_gpu_s() const;
  [[nodiscard]] double mfu() const;  // 0 without a peak
  [[nodiscard]] double hfu() const;
};

// The document `stagecraft.result/1`, on one line (docs/reports.md, "Keys of `run --json`").
[[nodiscard]] std::string render_json(const Report& report);
// The `memory` object of that document, as one value.
void write_memory(JsonWriter& json, const MemoryLedger& memory);
// The report for people, 80 columns; `verbose` adds assumptions and formulas.
[[nodiscard]] std::string render_text(const Report& report, bool verbose);
// The memory ledger as bars.
[[nodiscard]] std::string render_memory_text(const Report& report);

}  // namespace stagecraft
