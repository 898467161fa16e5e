#include "sim/schedule/exact_search.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

class Branching {
 public:
  Branching(const SearchProblem& problem, std::int64_t known, std::int64_t nodes)
      : problem_(problem),
        pipeline_(problem.pipeline),
        p_(pipeline_.shape.ranks),
        m_(pipeline_.shape.micro_batches),
        chunks_(pipeline_.shape.chunks),
        budget_(nodes),
        due_(problem.dues()) {
    result_.length = known;
    words_.resize(static_cast<std::size_t>(p_));
    ends_.assign(2 * static_cast<std::size_t>(pipeline_.stage_count() * m_), 0);
    state_.counts.assign(3 * static_cast<std::size_t>(pipeline_.stage_count()), 0);
    state_.free.assign(static_cast<std::size_t>(p_), 0);
    state_.banned.assign(static_cast<std::size_t>(p_), 0);
  }

  ExactResult run() && {
    visit();
    result_.proven = result_.nodes < budget_;
    return std::move(result_);
  }

 private:
  struct State {
    std::vector<int> counts;            // [rank][letter]
    std::vector<std::int64_t> free;     // [rank]
    std::vector<std::uint64_t> banned;  // [rank] -> letters that must not come next
  };
  struct Candidate {
    int rank = 0;
    Letter letter = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
  };

  [[nodiscard]] int& count(int rank, int letter) {
    return state_.counts[static_cast<std::size_t>(rank * 3 * chunks_ + letter)];
  }
  [[nodiscard]] int count(int rank, int letter) const {
    return state_.counts[static_cast<std::size_t>(rank * 3 * chunks_ + letter)];
  }
  [[nodiscard]] int forwards(int stage) const { return count(pipeline_.rank_of(stage), 3 * (stage / p_)); }
  [[nodiscard]] int gradients(int stage) const {
    return count(pipeline_.rank_of(stage), 3 * (stage / p_) + 1);
  }
  [[nodiscard]] std::int64_t& end_of(int stage, bool gradient, int j) {
    return ends_[static_cast<std::size_t>((2 * stage + (gradient ? 1 : 0)) * m_ + j)];
  }
  [[nodiscard]] std::int64_t due(int rank) const { return due_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::int64_t time(int rank, int letter) const {
    const StageCosts& costs = pipeline_.costs_of(rank, letter / 3);
    return letter % 3 == 0 ? costs.forward : letter % 3 == 1 ? costs.input_gradient : costs.weight_gradient;
  }
  [[nodiscard]] int held(int rank) const {
    int held = 0;
    for (int chunk = 0; chunk < chunks_; ++chunk) held += count(rank, 3 * chunk) - count(rank, 3 * chunk + 2);
    return held;
  }

  // Earliest start of the next pass of a letter; nullopt when it cannot be next.
  std::optional<std::int64_t> start_of(int rank, int letter) {
    const int j = count(rank, letter);
    if (j == m_) return std::nullopt;
    const int stage = pipeline_.stage_of(rank, letter / 3);
    std::int64_t start = state_.free[static_cast<std::size_t>(rank)];
    if (letter % 3 == 2) return count(rank, letter - 1) > j ? std::optional(start) : std::nullopt;
    if (letter % 3 == 0) {
      if (held(rank) == pipeline_.memory_limit) return std::nullopt;
      if (stage == 0) return start;
      if (forwards(stage - 1) <= j) return std::nullopt;
      return std::max(start, end_of(stage - 1, false, j) + problem_.crossing(stage - 1));
    }
    if (stage + 1 == pipeline_.stage_count()) {
      return forwards(stage) > j ? std::optional(start) : std::nullopt;
    }
    if (gradients(stage + 1) <= j) return std::nullopt;
    return std::max(start, end_of(stage + 1, true, j) + problem_.crossing(stage));
  }

  std::vector<Candidate> candidates() {
    std::vector<Candidate> all;
    for (int rank = 0; rank < p_; ++rank) {
      for (int letter = 0; letter < 3 * chunks_; ++letter) {
        const auto start = start_of(rank, letter);
        if (!start) continue;
        all.push_back({.rank = rank,
                       .letter = static_cast<Letter>(letter),
                       .start = *start,
                       .end = *start + time(rank, letter)});
      }
    }
    return all;
  }

  [[nodiscard]] bool is_banned(const Candidate& candidate) const {
    return (state_.banned[static_cast<std::size_t>(candidate.rank)] >> candidate.letter & 1U) != 0;
  }

  // Lower bound of all completions of the partial order. `first_end`: no pass outside the candidates starts
  // earlier.
  std::int64_t bound(const std::vector<Candidate>& all, std::int64_t first_end) {
    std::vector<std::int64_t> next(static_cast<std::size_t>(p_), first_end);
    for (const Candidate& c : all) {
      auto& earliest = next[static_cast<std::size_t>(c.rank)];
      if (!is_banned(c)) earliest = std::min(earliest, c.start);
    }
    std::int64_t bound = 0;
    for (int rank = 0; rank < p_; ++rank) {
      auto& start = next[static_cast<std::size_t>(rank)];
      start = std::max(start, state_.free[static_cast<std::size_t>(rank)]);
      std::int64_t left = 0;
      for (int letter = 0; letter < 3 * chunks_; ++letter)
        left += (m_ - count(rank, letter)) * time(rank, letter);
      if (left == 0) start = state_.free[static_cast<std::size_t>(rank)];
      bound = std::max(bound, start + left - due(rank));
    }
    return std::max(bound, bound_of_chains(next));
  }

  // Bound from chains: the last forwards run down the stages, the last input gradients up, each followed by
  // its weight gradient.
  std::int64_t bound_of_chains(const std::vector<std::int64_t>& next) {
    const int stages = pipeline_.stage_count();
    std::int64_t bound = 0;
    std::int64_t way = 0;  // end of the last pass of the stage before
    for (int stage = 0; stage < stages; ++stage) {
      const int left = m_ - forwards(stage);
      const int rank = pipeline_.rank_of(stage);
      const std::int64_t one = time(rank, 3 * (stage / p_));
      if (stage > 0) way += problem_.crossing(stage - 1);
      way = left == 0 ? end_of(stage, false, m_ - 1)
                      : std::max(way + one, next[static_cast<std::size_t>(rank)] + left * one);
    }
    for (int stage = stages - 1; stage >= 0; --stage) {
      const int rank = pipeline_.rank_of(stage);
      const int letter = 3 * (stage / p_) + 1;
      const std::int64_t one = time(rank, letter);
      const int left = m_ - count(rank, letter);
      if (stage + 1 < stages) way += problem_.crossing(stage);
      if (left == 0) {
        way = end_of(stage, true, m_ - 1);
        continue;
      }
      way = std::max(way + one, next[static_cast<std::size_t>(rank)] + before_last_gradient(stage));
      bound = std::max(bound, way + time(rank, letter + 1) - due(rank));
    }
    return bound;
  }

  // Remaining work of a rank before the end of the last input gradient of a stage: its forwards and input
  // gradients, and the weight gradients that its memory cannot postpone until then.
  [[nodiscard]] std::int64_t before_last_gradient(int stage) const {
    const int rank = pipeline_.rank_of(stage);
    const int chunk = stage / p_;
    std::int64_t work = (m_ - count(rank, 3 * chunk)) * time(rank, 3 * chunk) +
                        (m_ - count(rank, 3 * chunk + 1)) * time(rank, 3 * chunk + 1);
    const int late = std::min(m_ - count(rank, 3 * chunk + 2), pipeline_.memory_limit);
    work += (m_ - count(rank, 3 * chunk + 2) - late) * time(rank, 3 * chunk + 2);
    return work;
  }

  // Has another partial order done the same passes, everything at least as early?
  bool is_dominated() {
    std::vector<std::uint64_t> key(state_.counts.begin(), state_.counts.end());
    key.insert(key.end(), state_.banned.begin(), state_.banned.end());
    std::vector<std::int64_t> times = state_.free;
    const int stages = pipeline_.stage_count();
    for (int stage = 0; stage < stages; ++stage) {
      const int used = stage + 1 < stages ? forwards(stage + 1) : forwards(stage);
      for (int j = used; j < forwards(stage); ++j) times.push_back(end_of(stage, false, j));
      const int taken = stage > 0 ? gradients(stage - 1) : gradients(stage);
      for (int j = taken; j < gradients(stage); ++j) times.push_back(end_of(stage, true, j));
    }
    auto& known = seen_[std::move(key)];
    const auto no_later = [](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] > b[i]) return false;
      }
      return true;
    };
    for (const auto& other : known) {
      if (no_later(other, times)) return true;
    }
    std::erase_if(known, [&](const auto& other) { return no_later(times, other); });
    known.push_back(std::move(times));
    return false;
  }

  void take(const Candidate& candidate) {
    const int rank = candidate.rank;
    const int stage = pipeline_.stage_of(rank, chunk_of(candidate.letter));
    int& done = count(rank, candidate.letter);
    if (candidate.letter % 3 != 2) end_of(stage, candidate.letter % 3 == 1, done) = candidate.end;
    ++done;
    state_.free[static_cast<std::size_t>(rank)] = candidate.end;
    state_.banned[static_cast<std::size_t>(rank)] = 0;
    words_[static_cast<std::size_t>(rank)].push_back(candidate.letter);
  }

  void branch_into(const Candidate& candidate) {
    const auto rank = static_cast<std::size_t>(candidate.rank);
    const std::int64_t free = state_.free[rank];
    const std::uint64_t banned = state_.banned[rank];
    take(candidate);
    visit();
    words_[rank].pop_back();
    --count(candidate.rank, candidate.letter);
    state_.free[rank] = free;
    state_.banned[rank] = banned;
  }

  void finish() {
    std::int64_t length = 0;
    for (int rank = 0; rank < p_; ++rank) {
      length = std::max(length, state_.free[static_cast<std::size_t>(rank)] - due(rank));
    }
    if (length >= result_.length) return;
    result_.length = length;
    result_.shorter = words_;
  }

  void visit() {
    if (result_.nodes >= budget_) return;
    ++result_.nodes;
    const std::vector<Candidate> all = candidates();
    if (all.empty()) {
      if (std::ranges::all_of(state_.counts, [&](int done) { return done == m_; })) finish();
      return;
    }
    const Candidate* first = nullptr;
    for (const Candidate& c : all) {
      if (!is_banned(c) && (first == nullptr || c.end < first->end)) first = &c;
    }
    if (first == nullptr) return;
    if (bound(all, first->end) >= result_.length || is_dominated()) return;

    std::vector<Candidate> next;
    for (const Candidate& c : all) {
      const bool may_precede = c.rank == first->rank && c.start < first->end && !is_banned(c);
      if (may_precede || &c == first) next.push_back(c);  // a pass without time starts when it ends
    }
    // Gradients first, since they unblock earlier stages; then by start time.
    std::ranges::sort(next, [](const Candidate& a, const Candidate& b) {
      const auto urgency = [](const Candidate& c) {
        return c.letter % 3 == 1 ? 0 : c.letter % 3 == 0 ? 1 : 2;
      };
      return std::tuple(a.start, urgency(a), a.letter) < std::tuple(b.start, urgency(b), b.letter);
    });
    for (const Candidate& c : next) branch_into(c);
    if (first->letter % 3 != 0 || chunks_ == 1) return;
    // Reserves the memory for another chunk's forward: none of these comes next on the rank.
    auto& banned = state_.banned[static_cast<std::size_t>(first->rank)];
    const std::uint64_t before = banned;
    for (const Candidate& c : next) banned |= std::uint64_t{1} << c.letter;
    visit();
    banned = before;
  }

  const SearchProblem& problem_;
  const SplitPipeline& pipeline_;
  int p_, m_, chunks_;
  std::int64_t budget_;
  ExactResult result_;
  RankWords words_;
  State state_;
  std::vector<std::int64_t> due_;   // [rank]
  std::vector<std::int64_t> ends_;  // [stage][F, I][micro-batch]
  std::map<std::vector<std::uint64_t>, std::vector<std::vector<std::int64_t>>> seen_;
};

}  // namespace

ExactResult exact_search(const SearchProblem& problem, std::int64_t known, std::int64_t nodes) {
  SC_CHECK(3 * problem.pipeline.shape.chunks <= 64, "letters fit into a word of bits");
  return Branching(problem, known, nodes).run();
}

}  // namespace stagecraft
