#include "sim/schedule/words.hpp"

#include <algorithm>
#include <limits>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kNoProduct = std::numeric_limits<std::size_t>::max();

int chunk_of_stage(const SplitPipeline& pipeline, int stage) {
  return stage / pipeline.shape.ranks;
}

std::int64_t longest(const SplitPipeline& pipeline, int rank, std::int64_t StageCosts::*pass) {
  std::int64_t most = 0;
  for (int chunk = 0; chunk < pipeline.shape.chunks; ++chunk) {
    most = std::max(most, pipeline.costs_of(rank, chunk).*pass);
  }
  return most;
}

}  // namespace

std::vector<std::int64_t> SearchProblem::heads() const {
  std::vector<std::int64_t> heads{0};
  for (int stage = 0; stage + 1 < pipeline.shape.ranks; ++stage)
    heads.push_back(heads.back() + pipeline.stages[static_cast<std::size_t>(stage)].forward +
                    crossing(stage));
  return heads;
}

std::vector<std::int64_t> SearchProblem::dues() const {
  if (goal == SearchGoal::kSpan) return heads();
  return std::vector<std::int64_t>(static_cast<std::size_t>(pipeline.shape.ranks), 0);
}

RankWords words_of(const Schedule& schedule, const SplitPipeline& pipeline) {
  RankWords words(schedule.ranks.size());
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    for (const Action& action : schedule.ranks[rank]) {
      SC_CHECK(action.pass != Pass::kRecompute, "a word knows no recompute");
      const int chunk = chunk_of_stage(pipeline, action.stage);
      const Pass pass = action.pass == Pass::kBackward ? Pass::kInputGradient : action.pass;
      words[rank].push_back(letter_of(pass, chunk));
      if (action.pass == Pass::kBackward) words[rank].push_back(letter_of(Pass::kWeightGradient, chunk));
    }
  }
  return words;
}

Schedule schedule_of(const RankWords& words, const SplitPipeline& pipeline, std::string name) {
  Schedule schedule{.name = std::move(name),
                    .shape = pipeline.shape,
                    .placement = pipeline.placement,
                    .ranks = std::vector<std::vector<Action>>(words.size())};
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    std::vector<int> counts(3 * static_cast<std::size_t>(pipeline.shape.chunks), 0);
    for (const Letter letter : words[rank]) {
      schedule.ranks[rank].push_back({.pass = pass_of_letter(letter),
                                      .stage = pipeline.stage_of(static_cast<int>(rank), chunk_of(letter)),
                                      .micro_batch = counts[letter]++});
    }
  }
  return schedule;
}

bool is_legal(const std::vector<Letter>& word, const SplitPipeline& pipeline) {
  std::vector<int> counts(3 * static_cast<std::size_t>(pipeline.shape.chunks), 0);
  int held = 0;
  for (const Letter letter : word) {
    const int count = ++counts[letter];
    const int kind = letter % 3;
    if (kind > 0 && count > counts[letter - 1U]) return false;
    if (kind == 0 && ++held > pipeline.memory_limit) return false;
    if (kind == 2) --held;
  }
  return true;
}

std::int64_t lower_bound(const SearchProblem& problem) {
  const SplitPipeline& pipeline = problem.pipeline;
  const int p = pipeline.shape.ranks;
  const int stages = pipeline.stage_count();
  const std::int64_t m = pipeline.shape.micro_batches;
  const std::int64_t room = std::min<std::int64_t>(pipeline.memory_limit, m * pipeline.shape.chunks);
  const std::vector<std::int64_t> heads = problem.heads(), dues = problem.dues();
  // From the start of a stage's forward to the end of its input gradient, for one micro-batch alone.
  std::vector<std::int64_t> round_trip(static_cast<std::size_t>(stages), 0);
  for (int stage = stages - 1; stage >= 0; --stage) {
    const StageCosts& costs = pipeline.stages[static_cast<std::size_t>(stage)];
    std::int64_t& trip = round_trip[static_cast<std::size_t>(stage)];
    trip = costs.forward + costs.input_gradient;
    if (stage + 1 < stages)
      trip += round_trip[static_cast<std::size_t>(stage) + 1] + 2 * problem.crossing(stage);
  }
  std::int64_t bound = 0;
  for (int rank = 0; rank < p; ++rank) {
    std::int64_t work = 0;
    std::int64_t occupied = 0;  // time in memory, all micro-batches
    for (int chunk = 0; chunk < pipeline.shape.chunks; ++chunk) {
      const StageCosts& costs = pipeline.costs_of(rank, chunk);
      const std::int64_t trip = round_trip[static_cast<std::size_t>(pipeline.stage_of(rank, chunk))];
      work += m * (costs.forward + costs.input_gradient + costs.weight_gradient);
      occupied += m * (trip + costs.weight_gradient);
    }
    // The first gradient comes to the last chunk.
    const int last_stage = pipeline.stage_of(rank, pipeline.shape.chunks - 1);
    std::int64_t first_gradient = round_trip[static_cast<std::size_t>(last_stage)] -
                                  pipeline.stages[static_cast<std::size_t>(last_stage)].input_gradient;
    for (int stage = rank; stage < last_stage; ++stage) {
      first_gradient += pipeline.stages[static_cast<std::size_t>(stage)].forward + problem.crossing(stage);
    }
    const std::int64_t idle =
        std::max<std::int64_t>(0, first_gradient - room * longest(pipeline, rank, &StageCosts::forward));
    const std::int64_t own = std::max(work + idle, ceil_div(occupied, room));
    const std::int64_t head = heads[static_cast<std::size_t>(rank)];
    bound = std::max(bound, head + own - dues[static_cast<std::size_t>(rank)]);
    // After its last input gradient, of chunk 0, a rank has weight gradients only, of what its memory holds.
    std::int64_t gradient = head + work + idle - room * longest(pipeline, rank, &StageCosts::weight_gradient);
    for (int stage = rank - 1; stage >= 0; --stage) {
      const StageCosts& costs = pipeline.stages[static_cast<std::size_t>(stage)];
      gradient += problem.crossing(stage) + costs.input_gradient;
      bound = std::max(bound, gradient + costs.weight_gradient - dues[static_cast<std::size_t>(stage)]);
    }
  }
  return bound;
}

WordPlayer::WordPlayer(const SearchProblem& problem)
    : problem_(&problem),
      p_(problem.pipeline.shape.ranks),
      m_(problem.pipeline.shape.micro_batches),
      stages_(problem.pipeline.stage_count()),
      letters_(3 * static_cast<std::size_t>(problem.pipeline.shape.chunks)),
      dues_(problem.dues()) {
  for (int rank = 0; rank < p_; ++rank) {
    for (int chunk = 0; chunk < problem.pipeline.shape.chunks; ++chunk) {
      const StageCosts& costs = problem.pipeline.costs_of(rank, chunk);
      times_.insert(times_.end(), {costs.forward, costs.input_gradient, costs.weight_gradient});
    }
  }
  made_.resize(products(stages_));
  maker_.resize(products(stages_));
  ends_.resize(static_cast<std::size_t>(p_));
  needs_.resize(static_cast<std::size_t>(p_));
}

std::optional<WordPlayer::Length> WordPlayer::play(const RankWords& words) {
  std::ranges::fill(made_, -1);
  counts_.assign(static_cast<std::size_t>(p_) * letters_, 0);
  ranks_.assign(static_cast<std::size_t>(p_), {.next = 0, .end = 0, .waits_for = kNoProduct});
  runnable_.clear();
  for (int rank = p_ - 1; rank >= 0; --rank) {
    const auto r = static_cast<std::size_t>(rank);
    ends_[r].resize(words[r].size());
    needs_[r].resize(words[r].size());
    runnable_.push_back(rank);
  }
  while (!runnable_.empty()) {
    const int rank = runnable_.back();
    runnable_.pop_back();
    advance(rank, words[static_cast<std::size_t>(rank)]);
  }
  Length result;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if (static_cast<std::size_t>(ranks_[rank].next) < words[rank].size()) return std::nullopt;
    const std::int64_t own = ranks_[rank].end - dues_[rank];
    result.length = std::max(result.length, own);
    result.sum += own;
  }
  return result;
}

void WordPlayer::wake(int stage, std::size_t product) {
  const int rank = problem_->pipeline.rank_of(stage);
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.waits_for != product) return;
  state.waits_for = kNoProduct;
  runnable_.push_back(rank);
}

void WordPlayer::advance(int rank, const std::vector<Letter>& word) {
  const auto r = static_cast<std::size_t>(rank);
  RankState& state = ranks_[r];
  int* const counts = &counts_[r * letters_];
  for (; static_cast<std::size_t>(state.next) < word.size(); ++state.next) {
    const Letter letter = word[static_cast<std::size_t>(state.next)];
    const auto position = static_cast<std::size_t>(state.next);
    const int stage = problem_->pipeline.stage_of(rank, chunk_of(letter));
    const auto j = static_cast<std::size_t>(counts[letter]);
    const int kind = letter % 3;
    std::size_t need = kNoProduct;
    if (kind == 0 && stage > 0) need = products(stage - 1) + j;
    if (kind == 1) {
      need =
          stage + 1 < stages_ ? products(stage + 1) + static_cast<std::size_t>(m_) + j : products(stage) + j;
    }
    std::int64_t start = state.end;
    if (need != kNoProduct) {
      // The forward of the last stage includes the time of a message, but there is no next stage.
      const std::int64_t arrival = made_[need];
      if (arrival < 0) {
        state.waits_for = need;
        return;
      }
      start = std::max(start, arrival);
    }
    needs_[r][position] = need;
    state.end = start + time(rank, letter);
    ends_[r][position] = state.end;
    ++counts[letter];
    if (kind == 2) continue;
    const std::size_t product = products(stage) + (kind == 1 ? static_cast<std::size_t>(m_) : 0) + j;
    const int user = kind == 0 ? stage + 1 : stage - 1;
    const bool used = user >= 0 && user < stages_;
    made_[product] = state.end + (used ? problem_->crossing(std::min(stage, user)) : 0);
    maker_[product] = static_cast<std::int32_t>(state.next);
    if (used) wake(user, product);
  }
}

std::vector<WordPlayer::Block> WordPlayer::critical_blocks(const RankWords& words) const {
  std::size_t rank = 0;
  const auto own = [&](std::size_t r) { return ranks_[r].end - dues_[r]; };
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    if (own(r) > own(rank)) rank = r;
  }
  std::vector<Block> blocks;
  int position = static_cast<int>(words[rank].size()) - 1;
  while (position >= 0) {
    Block block{.rank = static_cast<int>(rank), .first = position, .last = position};
    std::size_t need = kNoProduct;
    for (;; --block.first) {
      const auto at = static_cast<std::size_t>(block.first);
      const std::int64_t start = ends_[rank][at] - time(static_cast<int>(rank), words[rank][at]);
      if (block.first > 0 && ends_[rank][at - 1] == start) continue;
      need = needs_[rank][at];
      break;
    }
    blocks.push_back(block);
    if (need == kNoProduct) break;
    const auto stage = static_cast<int>(need / (2 * static_cast<std::size_t>(m_)));
    rank = static_cast<std::size_t>(problem_->pipeline.rank_of(stage));
    position = maker_[need];
  }
  return blocks;
}

}  // namespace stagecraft
