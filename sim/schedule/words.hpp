// Orders in the form that a search uses: for each rank a word over F, I and W of its chunks.
//
// Micro-batches are interchangeable, so the k-th pass of a stage may as well run micro-batch k: for every
// order there is one no longer that runs each stage's micro-batches in ascending order. The kinds of the
// passes in sequence then define an order. An unsplit backward is an I followed by its W: the gradient leaves
// earlier, and nothing becomes later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule/order_builder.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

enum class SearchGoal : std::uint8_t { kSpan, kMakespan };

// The pipeline to schedule and the goal. Loop or V placement.
struct SearchProblem {
  SplitPipeline pipeline;
  SearchGoal goal = SearchGoal::kSpan;

  // [rank] -> the earliest start of its first pass: the way of micro-batch 0 to it.
  [[nodiscard]] std::vector<std::int64_t> heads() const;
  // [rank] -> the time from which its length counts by the goal: that start, or 0.
  [[nodiscard]] std::vector<std::int64_t> dues() const;
  // Message time between a stage and the next.
  [[nodiscard]] std::int64_t crossing(int stage) const {
    return pipeline.share_a_rank(stage) ? 0 : pipeline.message;
  }
};

// A letter of a word: three a chunk.
using Letter = std::uint8_t;
[[nodiscard]] constexpr Letter letter_of(Pass pass, int chunk) {
  const int kind = pass == Pass::kForward ? 0 : pass == Pass::kInputGradient ? 1 : 2;
  return static_cast<Letter>(3 * chunk + kind);
}
[[nodiscard]] constexpr int chunk_of(Letter letter) {
  return letter / 3;
}
[[nodiscard]] constexpr Pass pass_of_letter(Letter letter) {
  return letter % 3 == 0 ? Pass::kForward : letter % 3 == 1 ? Pass::kInputGradient : Pass::kWeightGradient;
}

using RankWords = std::vector<std::vector<Letter>>;  // [rank]

// requires the placement of the problem and no recompute passes.
[[nodiscard]] RankWords words_of(const Schedule& schedule, const SplitPipeline& pipeline);
[[nodiscard]] Schedule schedule_of(const RankWords& words, const SplitPipeline& pipeline, std::string name);

// Does the word keep F before I before W, and the memory limit, from `begin` to `end`? Counts start from the
// front.
[[nodiscard]] bool is_legal(const std::vector<Letter>& word, const SplitPipeline& pipeline);

// Lower bound of the length of any order: the largest of three bounds over the ranks. First, the rank's work
// and its idle time before the first gradient, which only as many forwards as the memory holds can fill.
// Second, the time that the activations of all micro-batches occupy its memory. Third, the end of its last
// input gradient, which leaves no more weight gradients for later than the memory holds, and that gradient's
// way to rank 0.
[[nodiscard]] std::int64_t lower_bound(const SearchProblem& problem);

// Plays words fast, again and again; remembers the last play.
class WordPlayer {
 public:
  explicit WordPlayer(const SearchProblem& problem);

  struct Length {
    std::int64_t length = 0;  // by the goal
    std::int64_t sum = 0;     // sum over the ranks, which decides between equal lengths
    friend auto operator<=>(const Length&, const Length&) = default;
  };
  // nullopt on a deadlock. requires legal words.
  [[nodiscard]] std::optional<Length> play(const RankWords& words);

  // A stretch of one rank's word with no idle time in it.
  struct Block {
    int rank = 0;
    int first = 0;
    int last = 0;
  };
  // The critical chain of blocks of the last play, from its end to its start. requires a play without
  // deadlock of these words.
  [[nodiscard]] std::vector<Block> critical_blocks(const RankWords& words) const;

 private:
  struct RankState {
    int next = 0;
    std::int64_t end = 0;
    std::size_t waits_for = 0;
  };
  void advance(int rank, const std::vector<Letter>& word);
  void wake(int stage, std::size_t product);
  [[nodiscard]] std::int64_t time(int rank, Letter letter) const {
    return times_[static_cast<std::size_t>(rank) * letters_ + letter];
  }
  // Index in made_ of the ends of a stage's forwards; those of its input gradients follow m entries later.
  [[nodiscard]] std::size_t products(int stage) const {
    return 2 * static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_);
  }

  const SearchProblem* problem_;
  int p_, m_, stages_;
  std::size_t letters_;
  std::vector<std::int64_t> times_;  // [rank][letter]
  std::vector<std::int64_t> dues_;   // [rank]
  // [stage][F, I][micro-batch] -> when it arrives at who needs it, -1 = not yet
  std::vector<std::int64_t> made_;
  std::vector<std::int32_t> maker_;  // the position of the pass that made it
  std::vector<int> counts_;          // [rank][letter]
  std::vector<RankState> ranks_;
  std::vector<std::vector<std::int64_t>> ends_;  // [rank][position]
  std::vector<std::vector<std::size_t>> needs_;  // [rank][position] -> in made_, or kNothing
  std::vector<int> runnable_;
};

}  // namespace stagecraft
