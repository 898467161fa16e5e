// Interleaved 1F1B: 1F1B over v chunks a rank, in groups of N micro-batches.
//
// A rank holds v thin slices of the model instead of one thick one, so the pipeline fills v times faster and
// the bubble shrinks to 1/v; the price is v times the messages and more activations. A group of N
// micro-batches passes chunk 0, then chunk 1, and so on: N = p goes back to chunk 0 as early as possible
// (depth first); a larger N leaves the message from the last rank to the first more time.
//
//   rank     in [0, p).
//   returns  2*n actions, n = m*v: F of step 0..w-1, then F(w+k) B(k) for k in [0, n-w), then the backwards
//            left, with w = min(2(p-1-rank) + (v-1)N, n). Step k is row k of chunk_table; the backward takes
//            the same row with the chunks counted from the other end.
//   bound    min(w + 1, n) chunk activations are live at once.
//   source   Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2.2; order, N and its rules of Megatron-LM
//            (microbatch_group_size_per_vp_stage).
//   throws   InternalError on a shape that interleaved_constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// One step of a rank: a chunk and a micro-batch.
struct ChunkStep {
  int chunk = 0;
  int micro_batch = 0;
  friend bool operator==(const ChunkStep&, const ChunkStep&) = default;
};

// The order in which forwards visit chunks: for each group of `group` consecutive micro-batches (the last may
// be shorter), for each chunk, the micro-batches of the group. micro_batches * chunks rows. requires all
// three >= 1.
[[nodiscard]] std::vector<ChunkStep> chunk_table(int micro_batches, int chunks, int group);

// Micro-batches of a group: as the shape says, else p.
[[nodiscard]] int group_of(const PipelineShape& shape);

// w for groups of `group`.
[[nodiscard]] int interleaved_warm_up(const PipelineShape& shape, int rank, int group);

// nullopt when v >= 2, p <= N <= m, and m mod N is 0 or at least p; N defaults to p. A last group of 1..p-1
// micro-batches costs extra bubble or deadlocks, which is why Megatron-LM refuses it too. The hint names
// numbers that are legal.
[[nodiscard]] std::optional<ScheduleProblem> interleaved_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> interleaved(const PipelineShape& shape, int rank);

// The interleaved order with groups of `group`, whatever the shape says. Not every group is free of deadlock:
// the caller's constraint must see to that.
[[nodiscard]] std::vector<Action> interleaved_in_groups(const PipelineShape& shape, int rank, int group);

}  // namespace stagecraft
