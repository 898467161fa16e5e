// What a run tells: pure functions of the plan, the program and its timeline.
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

// What the critical path does, by the name of its tasks ("F", "send forward", "gradient reduction"), longest
// first.
struct PathShare {
  std::string name;
  int tasks = 0;
  Duration time{};

  friend bool operator==(const PathShare&, const PathShare&) = default;
};

// A link that flows share, or several that they use alike.
struct LinkReport {
  std::string name;  // of the first
  int alike = 1;
  Bandwidth capacity{};  // that training gets; of each, as all that follows
  double bytes = 0;
  double utilisation = 0;  // bytes over what the capacity moves in an iteration
  Duration busy{}, saturated{};
  Duration delay{};  // summed over tasks: what they lost because this link was their bottleneck

  friend bool operator==(const LinkReport&, const LinkReport&) = default;
};

// Two kinds of traffic that were on a link together while it was full. Passes stand for the collectives in
// them.
struct MeetingReport {
  std::string link;  // name of the first of its kind
  std::string first, second;
  Duration time{};  // with at least one of each there, however many; at most what the link was full

  friend bool operator==(const MeetingReport&, const MeetingReport&) = default;
};

// Another job on the same fabric.
struct OtherJobReport {
  std::string name;
  std::string nodes;            // "16-31"
  Duration alone_time{};        // of its iteration, without anybody else
  Duration shared_time{};       // the mean of those that ended during ours; 0 where none did
  std::int64_t iterations = 0;  // that ended
  Duration cost{};              // what our iteration takes longer beside this job and nobody else

  friend bool operator==(const OtherJobReport&, const OtherJobReport&) = default;
};

// Our job's iterations one after the other while the others repeat theirs, the first from time 0.
struct RepeatedReport {
  std::int64_t iterations = 0;
  Duration mean{}, least{}, most{};

  friend bool operator==(const RepeatedReport&, const RepeatedReport&) = default;
};

// What an iteration met on a network whose links are shared.
struct NetworkReport {
  bool shared = false;
  Duration idle_time{};                  // of the same iteration on a network where nobody slows anybody
  std::vector<LinkReport> links;         // most delay first, then most used
  std::vector<MeetingReport> meetings;   // longest first
  std::optional<Duration> alone_time{};  // of the same iteration, where there are other jobs, without them
  std::vector<OtherJobReport> jobs{};    // as the scenario lists them
  std::optional<RepeatedReport> repeated{};  // where more than one iteration was asked for

  friend bool operator==(const NetworkReport&, const NetworkReport&) = default;
};

// A rank that stands still for good.
struct StalledRank {
  std::string rank;         // "pipeline 2, data 0"
  Duration since{};         // idle; of one that is stuck: the start of its task
  std::string task;         // the first that does not end
  bool stuck = false;       // it began
  std::string waits_for{};  // what is stuck at the end of the chain that it waits for
  std::string waits_for_rank{};

  friend bool operator==(const StalledRank&, const StalledRank&) = default;
};

// What goes wrong inside the iteration.
struct FaultReport {
  std::vector<std::string> faults;  // "2 s: node 3 dies", as given
  Duration without{};               // the same iteration without them
  std::optional<Duration> stall{};  // from then on nothing moves: the iteration does not finish
  std::vector<StalledRank> ranks{};

  friend bool operator==(const FaultReport&, const FaultReport&) = default;
};

struct Report {
  std::string scenario;  // the path as given
  std::string name;
  std::string headline;  // "tp 8 · pp 8 · dp 16 · interleaved-1f1b x2"
  int gpus = 0;
  std::int64_t samples = 0;   // per iteration
  std::int64_t tokens = 0;    // per iteration
  Duration iteration_time{};  // where it does not finish: until nothing moves any more
  std::array<Duration, 2> interval_90{};
  Flops model_flops{}, hardware_flops{};
  FlopRate peak{};  // of one GPU in the precision used; 0 for abstract stages
  Bubble bubble;
  std::array<Duration, kCategoryCount> breakdown{};
  std::vector<PathShare> critical_path;
  MemoryLedger memory;
  NetworkReport network{};  // not shared where the network is closed-form
  std::optional<FaultReport> faults{};
  OffloadPrice offload{};     // unused unless the scenario keeps something in host memory
  ByProvenance provenance{};  // shares of compute and communication time
  std::int64_t tasks = 0;
  int simulated_ranks = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> assumptions;  // defaults and assumed constants that mattered
  std::string profile;                   // name and date of the profile
  std::string software;                  // the preset that the job is taken to run
  bool graphs_may_help = false;          // its host calls operator after operator, outside of CUDA graphs
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

// The iteration that is reported. Of several in a row it lies between the ends of two iterations, the last
// but one and the one before, because after the last nothing follows. A single one is reported whole.
struct Window {
  Duration begin{}, end{};
  [[nodiscard]] Duration length() const { return end - begin; }
  friend bool operator==(const Window&, const Window&) = default;
};
[[nodiscard]] Window iteration_window(const Program& program, const Timeline& timeline);

// The bubble of an iteration that runs into others: what the busiest rank does not work. Its makespan and
// span are its length.
[[nodiscard]] Bubble measure_steady_bubble(const Program& program, const Timeline& timeline, Window window);
// Passes as the busiest rank spends them in the window; what the critical path does beside passes is exposed
// as far as that rank idles.
[[nodiscard]] std::array<Duration, kCategoryCount> measure_steady_breakdown(const Program& program,
                                                                            const Timeline& timeline,
                                                                            Window window);

// What the critical path does in the window; the times add up to its length.
[[nodiscard]] std::vector<PathShare> measure_steady_path(const Program& program, const Timeline& timeline,
                                                         Window window);

// Tasks on the compute streams with a stage are passes; everything else is not.
[[nodiscard]] Bubble measure_bubble(const Program& program, const Timeline& timeline);

// Tasks from time 0 to the last end, each starting when the one before ends; deterministic among equals
// (lowest id).
[[nodiscard]] std::vector<TaskId> critical_path(const Program& program, const Timeline& timeline);

// The tasks of the critical path summed by name; the times add up to the iteration.
[[nodiscard]] std::vector<PathShare> measure_critical_path(const Program& program, const Timeline& timeline);

[[nodiscard]] std::array<Duration, kCategoryCount> measure_breakdown(const Program& program,
                                                                     const Timeline& timeline);

// `alike`: of each link of the program, how many it stands for. `idle_time`: the makespan of a run on an idle
// network.
[[nodiscard]] NetworkReport measure_network(const Program& program, const Timeline& timeline,
                                            std::span<const int> alike, Duration idle_time);

// The ranks that stand still in a timeline that stalls, each compute stream by what `ranks` calls its rank.
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
