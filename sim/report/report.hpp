// The report of a run: pure functions of the plan, the program and its timeline.
//
//   MFU   model FLOPs / (iteration time * GPUs * peak); HFU counts what is recomputed as well.
//   Breakdown: passes as the busiest rank spends them; exposed communication and the tail as the critical
//   path has them; the bubble is what remains of the iteration. The parts add up to the iteration time, to
//   the nanosecond. A task that shared links or its device lasts longer than its label says: all its parts
//   are longer by the same factor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "calibrate/profile/provenance.hpp"
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

// The reported iteration. Of several consecutive ones it is the last but one, from the end of the iteration
// before it to its own end, because the last iteration has no successor. A single one is reported whole.
struct Window {
  Duration begin{}, end{};
  [[nodiscard]] Duration length() const { return end - begin; }
  friend bool operator==(const Window&, const Window&) = default;
};
[[nodiscard]] Window iteration_window(const Program& program, const Timeline& timeline);

// Bubble of an iteration in steady state. Its makespan and span are the length of the window less what the
// busiest rank spends on its step there: gradients, the optimizer, the host.
[[nodiscard]] Bubble measure_steady_bubble(const Program& program, const Timeline& timeline, Window window);
// Breakdown from the passes of the busiest rank in the window. Other work on the critical path counts as
// exposed, up to the idle time of that rank.
[[nodiscard]] Breakdown measure_steady_breakdown(const Program& program, const Timeline& timeline,
                                                 Window window);

// Time on the critical path in the window, by name; adds up to the length of the window.
[[nodiscard]] std::vector<PathShare> measure_steady_path(const Program& program, const Timeline& timeline,
                                                         Window window);

// Tasks on the compute streams with a stage are passes; everything else is not. `weights`, by copy of the
// pipeline: number of replicas that it stands for; empty: all equal.
[[nodiscard]] Bubble measure_bubble(const Program& program, const Timeline& timeline,
                                    std::span<const int> weights = {});

// For each task the first predecessor (lowest id; the one before it on its stream counts) that ended when it
// started.
[[nodiscard]] IdVector<TaskId, std::optional<TaskId>> tight_predecessors(const Program& program,
                                                                         const Timeline& timeline);

// Tasks from time 0 to the last end, each starting when the one before ends; deterministic among equals
// (lowest id).
[[nodiscard]] std::vector<TaskId> critical_path(const Program& program, const Timeline& timeline);

// The tasks of the critical path summed by name; the times add up to the iteration.
[[nodiscard]] std::vector<PathShare> measure_critical_path(const Program& program, const Timeline& timeline);

[[nodiscard]] Breakdown measure_breakdown(const Program& program, const Timeline& timeline);

// `alike`: number of cluster links that each link of the program stands for. `idle_time`: makespan on an idle
// network.
[[nodiscard]] NetworkReport measure_network(const Program& program, const Timeline& timeline,
                                            std::span<const int> alike, Duration idle_time);

// The ranks that stand still in a stalled timeline. `ranks` maps compute streams to the names of their ranks.
[[nodiscard]] std::vector<StalledRank> measure_stall(const Program& program, const Timeline& timeline,
                                                     std::span<const std::string> ranks);

// The document `stagecraft.result/1`, on one line (docs/reports.md, "Keys of `run --json`").
[[nodiscard]] std::string render_json(const Report& report);
// The `memory` object of that document, as one value.
void write_memory(JsonWriter& json, const MemoryLedger& memory);
// The report for people, 80 columns; `verbose` adds assumptions and formulas.
[[nodiscard]] std::string render_text(const Report& report, bool verbose);
// The memory ledger as bars.
[[nodiscard]] std::string render_memory_text(const Report& report);

}  // namespace stagecraft
