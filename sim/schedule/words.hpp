// Orders as a search sees them: for each rank a word over F, I and W of its chunks.
//
// Micro-batches are alike, so who runs the k-th pass of a stage can as well run micro-batch k: every order
// has one that is no longer and runs each stage's micro-batches in ascending order. What is left of an order
// is which kind of pass comes when. A whole backward is an I with its W behind it: the gradient leaves
// earlier, nothing comes later.
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

// What is ordered, by what it is judged. Loop or V placement.
struct SearchProblem {
  SplitPipeline pipeline;
  SearchGoal goal = SearchGoal::kSpan;

  // When a rank's first pass starts in every order without idle: the way of micro-batch 0 to it.
  [[nodiscard]] std::int64_t head(int rank) const;
  // Message time between a stage and the next.
  [[nodiscard]] std::int64_t crossing(int stage) const {
    return pipeline.rank_of(stage) == pipeline.rank_of(stage + 1) ? 0 : pipeline.message;
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

// A length that no order of the problem goes below. Of each rank: its work; what it must wait for the first
// gradient with no more forwards than the memory holds; what it must leave to do after its last gradient,
// which is no more than the memory holds either, while that gradient still travels to rank 0; and the time
// that the activations of all micro-batches take in the memory that there is.
[[nodiscard]] std::int64_t lower_bound(const SearchProblem& problem);

// Plays words fast, again and again; remembers the last play.
class WordPlayer {
 public:
  explicit WordPlayer(const SearchProblem& problem);

  struct Length {
    std::int64_t length = 0;  // by the goal
    std::int64_t sum =
        0;  // of what each rank takes by the goal: says which of two equal lengths is nearer to less
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
  // The chain of blocks that makes the last play as long as it is, from its end to its start. requires a play
  // without deadlock of these words.
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
  // Where the ends of a stage's forwards stand in made_; those of its input gradients stand m behind.
  [[nodiscard]] std::size_t products(int stage) const {
    return 2 * static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_);
  }

  const SearchProblem* problem_;
  int p_, m_, stages_;
  std::size_t letters_;
  std::vector<std::int64_t> times_;  // [rank][letter]
  std::vector<std::int64_t> heads_;
  std::vector<std::int64_t>
      made_;  // [stage][F, I][micro-batch] -> when it arrives at who needs it, -1 = not yet
  std::vector<std::int32_t> maker_;  // the position of the pass that made it
  std::vector<int> counts_;          // [rank][letter]
  std::vector<RankState> ranks_;
  std::vector<std::vector<std::int64_t>> ends_;  // [rank][position]
  std::vector<std::vector<std::size_t>> needs_;  // [rank][position] -> in made_, or kNothing
  std::vector<int> runnable_;
};

}  // namespace stagecraft
