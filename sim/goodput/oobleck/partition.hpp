// Cuts the layers of a model into the stages of one pipeline, exactly.
//
// Oobleck prices a pipeline of S stages that works on Nb micro-batches by its stage times w_i alone:
//
//   T = T1 + T2 + T3,  T1 = sum w_i,  T2 = (Nb - S + k - 1) w_k,  T3 = sum_{i >= k} w_i,
//
// k being the rightmost slowest stage, counted from 0; for equal stages this is the 1F1B time (Nb + S - 1) w.
// The equations fall short where an early stage dominates or micro-batches are few, so that the corrected
// rule never goes below what any order needs: Nb w_k (the slowest stage works on every micro-batch) and T1
// (one micro-batch passes every stage forward and backward).
//
//   source  Jang et al., "Oobleck", SOSP 2023 (arXiv 2309.08125), section 4.1.2, equations 1-4, as given
//           in its repository's docs/pipeline_planner.md; the bound Nb w_k: docs/resilience.md, section 5.2;
//           the bound T1 is ours.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class PipelineRule { kPublished, kCorrected };

// Stage i holds the layers from first_layers[i] up to the next stage's first layer. work[i] is its forward
// and backward time for one micro-batch.
struct Partition {
  std::vector<int> first_layers = {};  // [0] is 0; strictly increasing
  std::vector<Duration> work = {};

  friend bool operator==(const Partition&, const Partition&) = default;
};

// The stages of these layers that start at `first_layers`.
[[nodiscard]] Partition partition_at(std::span<const Duration> layer_work, std::vector<int> first_layers);

// Number of the model's layers on each stage.
[[nodiscard]] std::vector<int> layers_per_stage(const Partition& partition, int model_layers);

// The rightmost of the slowest, from 0.
[[nodiscard]] int slowest_stage(std::span<const Duration> work);

// Time of a pipeline as a function of its micro-batches: max(base + nb * slope, nb * slope, floor). The
// published rule is the first term alone. The time never falls as nb grows.
struct PipelineLine {
  Duration base{};   // T1 + T3 - (S - k + 1) w_k
  Duration slope{};  // w_k
  Duration floor{};  // T1
  PipelineRule rule = PipelineRule::kCorrected;

  // requires micro_batches >= 1.
  [[nodiscard]] Duration time(int micro_batches) const;
  // The most micro-batches, up to `limit`, that are done within `time`; 0 where not even one is.
  [[nodiscard]] int within(Duration time, int limit) const;
};
[[nodiscard]] PipelineLine pipeline_line(std::span<const Duration> work, PipelineRule rule);

// The best cut of one list of layers into any number of stages.
//
// Exact search: every range of layers is tried as stage k, with the fewest stages that fit before it and any
// number that fits after it. Any count between the fewest stages and one per layer is reachable by splitting.
// O(L^3) once, O(L^2) per number of stages. Plans of equal time are ordered by their published time, then by
// the lexicographically smallest list of stage starts.
//
//   source  docs/resilience.md, section 5.3. The divide and conquer of the paper keeps one plan per part,
//           which is not optimal: what a part is worth depends on the stage that is slowest in the whole.
class PartitionSearch {
 public:
  // requires at least one layer, and more than no work in all.
  explicit PartitionSearch(std::vector<Duration> layer_work);

  // nullopt when there are more stages than layers. requires stages >= 1, micro_batches >= 1.
  [[nodiscard]] std::optional<Partition> best(int stages, int micro_batches, PipelineRule rule) const;

  [[nodiscard]] int layers() const { return static_cast<int>(layer_work_.size()); }

 private:
  struct Range {  // the layers [begin, end) as the rightmost slowest stage
    int begin = 0;
    int end = 0;
    Duration work{};
    int fewest_before = 0;  // stages that cover [0, begin), none longer than `work`
    int fewest_behind = 0;  // stages that cover [end, L), all shorter than `work`
  };
  struct Candidate {
    Duration time{};
    Duration published{};
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };
  [[nodiscard]] Duration work(int begin, int end) const;
  [[nodiscard]] std::optional<int> stages_before(const Range& range, int stages) const;
  [[nodiscard]] Candidate price(const Range& range, int before, int stages, int micro_batches,
                                PipelineRule rule) const;
  [[nodiscard]] std::vector<int> starts(const Range& range, int before, int stages) const;
  void earliest_starts(int begin, int end, Duration longest, std::vector<int>& out, int count) const;
  [[nodiscard]] std::optional<int> fewest(int begin, int end, Duration longest) const;

  std::vector<Duration> layer_work_;
  std::vector<Duration> up_to_;  // work of the layers before
  std::vector<Range> ranges_;    // ranges that can be the slowest stage
};

// Cuts layers over stages of different speed, in the order of the stages; work[i][l] is the time of layer l
// on stage i. The work of the slowest stage is minimal (exact). Among such cuts the one that fills from the
// front is taken: a heuristic for T, since the exact search needs identical stages. nullopt when there are
// more stages than layers. requires a row per stage, all of one length.
[[nodiscard]] std::optional<Partition> partition_of_unequal(
    const std::vector<std::vector<Duration>>& layer_work);

}  // namespace stagecraft
