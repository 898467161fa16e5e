// A split-backward pipeline order under construction, pass by pass, with the time at which each would run.
//
// List schedulers are loops that query this state and choose the next pass. Micro-batches are
// interchangeable, so each stage runs them in ascending order, and rank and chunk alone identify a pass. It
// depends on the same micro-batch of the stage before (F) or after (I). Weight gradients run in the order of
// their input gradients.
//
//   idle      what a rank has waited since its first pass.
//   memory    in thousandths of a chunk's activations: F takes 1000, I returns its share, W the rest. Where I
//             returns something, more chunks may be in flight than the limit says: peak_in_flight() counts
//             each until its W.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/costs.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The pipeline to schedule. Loop or V placement: stage s lives on one rank for all micro-batches.
struct SplitPipeline {
  PipelineShape shape;
  Placement placement = Placement::kLoop;
  std::vector<StageCosts> stages;  // [global stage]
  std::int64_t message = 0;
  int memory_limit = 0;             // chunk activations a rank may hold, >= chunks
  int freed_by_input_gradient = 0;  // thousandths of a chunk that I returns

  // requires a placement of one rank per stage; a memory limit of 0 becomes `own_limit`.
  [[nodiscard]] static SplitPipeline of(const PipelineShape& shape, Placement placement,
                                        const ScheduleCosts& costs, int own_limit);
  [[nodiscard]] int stage_of(int rank, int chunk) const {
    if (placement == Placement::kV && chunk == 1) return 2 * shape.ranks - 1 - rank;
    return chunk * shape.ranks + rank;
  }
  [[nodiscard]] int rank_of(int stage) const { return places_of(placement, shape).rank_of(stage); }
  // Do `stage` and the next one live on one rank?
  [[nodiscard]] bool share_a_rank(int stage) const {
    return shape.ranks == 1 || (placement == Placement::kV && stage + 1 == shape.ranks);
  }
  [[nodiscard]] int stage_count() const { return shape.ranks * shape.chunks; }
  [[nodiscard]] const StageCosts& costs_of(int rank, int chunk) const {
    return stages[static_cast<std::size_t>(stage_of(rank, chunk))];
  }
  // The work of the busiest rank, which no order's span is below.
  [[nodiscard]] std::int64_t most_work() const;
};

inline constexpr int kChunk = 1000;  // activations of one forward

class OrderBuilder {
 public:
  // Keeps a reference to the pipeline.
  explicit OrderBuilder(const SplitPipeline& pipeline);

  // Number of F, I or W of a chunk in the order.
  [[nodiscard]] int count(Pass pass, int rank, int chunk) const;
  [[nodiscard]] bool left(Pass pass, int rank, int chunk) const {
    return count(pass, rank, chunk) < pipeline_->shape.micro_batches;
  }
  // Is the input of the chunk's next F or I in the order? False when no pass is left.
  [[nodiscard]] bool fed(Pass pass, int rank, int chunk) const;
  // Arrival of that input; 0 for passes without input. requires fed().
  [[nodiscard]] std::int64_t arrival(Pass pass, int rank, int chunk) const;
  // Does it come from another rank?
  [[nodiscard]] bool from_afar(Pass pass, int rank, int chunk) const;

  [[nodiscard]] std::int64_t end(int rank) const { return at(rank).end; }
  [[nodiscard]] std::int64_t idle(int rank) const { return at(rank).idle; }
  [[nodiscard]] std::int64_t worst_idle() const { return worst_idle_; }  // largest idle time of any rank
  // Does the memory hold `forwards` more forwards?
  [[nodiscard]] bool has_room(int rank, int forwards = 1) const {
    return at(rank).memory + std::int64_t{kChunk} * forwards <=
           std::int64_t{kChunk} * pipeline_->memory_limit;
  }
  // Weight gradients whose input gradient is in the order, and the chunk of the oldest.
  [[nodiscard]] int pending(int rank) const {
    return static_cast<int>(at(rank).input_gradients.size() - at(rank).weight_gradients);
  }
  [[nodiscard]] int oldest_pending(int rank) const {
    return at(rank).input_gradients[at(rank).weight_gradients];
  }
  [[nodiscard]] std::int64_t oldest_time(int rank) const {  // duration of the oldest pending one
    return pipeline_->costs_of(rank, oldest_pending(rank)).weight_gradient;
  }

  // requires fed().
  void put(Pass pass, int rank, int chunk);
  // requires pending() > 0.
  void put_weight_gradient(int rank);
  // Weight gradients until a forward has room. False when none is left to put.
  bool make_room(int rank);
  [[nodiscard]] bool can_make_room(int rank) const;

  [[nodiscard]] bool complete() const;
  [[nodiscard]] std::int64_t span() const;
  // Peak of any rank, in thousandths of a chunk, if I frees this much.
  [[nodiscard]] std::int64_t peak_memory(int freed_by_input_gradient) const;
  [[nodiscard]] Schedule take(std::string name) &&;

 private:
  struct Rank {
    std::int64_t first_start = -1;
    std::int64_t end = 0;
    std::int64_t idle = 0;
    std::int64_t memory = 0;           // thousandths of a chunk
    std::size_t weight_gradients = 0;  // number in the order
    std::vector<int> input_gradients;  // chunks, in order
  };
  [[nodiscard]] const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::size_t stage_index(int rank, int chunk) const {
    return static_cast<std::size_t>(pipeline_->stage_of(rank, chunk));
  }
  void run(int rank, const Action& action, std::int64_t arrival, std::int64_t time);

  const SplitPipeline* pipeline_;
  std::vector<Rank> ranks_;
  std::int64_t worst_idle_ = 0;
  std::vector<std::vector<std::int64_t>> forward_ends_;  // [stage][micro-batch]
  std::vector<std::vector<std::int64_t>> input_gradient_ends_;
  std::vector<int> weight_gradient_counts_;  // [stage]
  Schedule schedule_;
};

// Inline: list schedulers ask these of every rank in every round.

inline int OrderBuilder::count(Pass pass, int rank, int chunk) const {
  const std::size_t stage = stage_index(rank, chunk);
  if (pass == Pass::kForward) return static_cast<int>(forward_ends_[stage].size());
  if (pass == Pass::kInputGradient) return static_cast<int>(input_gradient_ends_[stage].size());
  return weight_gradient_counts_[stage];
}

inline bool OrderBuilder::fed(Pass pass, int rank, int chunk) const {
  if (!left(pass, rank, chunk)) return false;
  const std::size_t stage = stage_index(rank, chunk);
  const auto next = static_cast<std::size_t>(count(pass, rank, chunk));
  if (pass == Pass::kForward) return stage == 0 || forward_ends_[stage - 1].size() > next;
  if (stage + 1 == forward_ends_.size()) return forward_ends_[stage].size() > next;
  return input_gradient_ends_[stage + 1].size() > next;
}

inline bool OrderBuilder::from_afar(Pass pass, int rank, int chunk) const {
  const int stage = pipeline_->stage_of(rank, chunk);
  const int giver = pass == Pass::kForward ? stage - 1 : stage + 1;
  return giver >= 0 && giver < pipeline_->stage_count() && !pipeline_->share_a_rank(std::min(stage, giver));
}

inline std::int64_t OrderBuilder::arrival(Pass pass, int rank, int chunk) const {
  const std::size_t stage = stage_index(rank, chunk);
  const auto next = static_cast<std::size_t>(count(pass, rank, chunk));
  const std::int64_t message = from_afar(pass, rank, chunk) ? pipeline_->message : 0;
  if (pass == Pass::kForward) return stage == 0 ? 0 : forward_ends_[stage - 1][next] + message;
  if (stage + 1 == forward_ends_.size()) return forward_ends_[stage][next];
  return input_gradient_ends_[stage + 1][next] + message;
}

}  // namespace stagecraft
