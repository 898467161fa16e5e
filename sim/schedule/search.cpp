#include "sim/schedule/search.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/schedule/exact_search.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

// The generator of xorshift64*: the same numbers with any standard library.
// Source: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", ACM TOMS 42
// (2016).
class Lot {
 public:
  explicit Lot(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  // In [low, high].
  int draw(int low, int high) {
    state_ ^= state_ >> 12U;
    state_ ^= state_ << 25U;
    state_ ^= state_ >> 27U;
    const std::uint64_t number = (state_ * 0x2545F4914F6CDD1DU) >> 32U;
    return low + static_cast<int>(number * static_cast<std::uint64_t>(high - low + 1) >> 32U);
  }

 private:
  std::uint64_t state_;
};

struct Order {
  RankWords words;
  WordPlayer::Length length;
};

// Micro-batches one after another: forwards of all chunks, then each input gradient with its weight gradient.
RankWords one_by_one(const PipelineShape& shape) {
  std::vector<Letter> word;
  for (int j = 0; j < shape.micro_batches; ++j) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) word.push_back(letter_of(Pass::kForward, chunk));
    for (int chunk = shape.chunks - 1; chunk >= 0; --chunk) {
      word.push_back(letter_of(Pass::kInputGradient, chunk));
      word.push_back(letter_of(Pass::kWeightGradient, chunk));
    }
  }
  return RankWords(static_cast<std::size_t>(shape.ranks), word);
}

// 1F1B with one chunk a rank and its warm-up shrunk in proportion to the memory: the remaining known order
// where the limit is below the number of ranks. A rank with fewer micro-batches in flight than a gradient's
// way needs would stall the ranks before it. Weight gradients directly follow their input gradients.
RankWords capped(const SplitPipeline& pipeline) {
  RankWords words;
  const int m = pipeline.shape.micro_batches;
  const int last = pipeline.shape.ranks - 1;
  const int most = std::min(pipeline.memory_limit - 1, last);
  for (int rank = 0; rank <= last; ++rank) {
    const int warm_up = last == 0 ? 0 : std::min((last - rank) * most / last, m);
    std::vector<Letter>& word = words.emplace_back();
    for (int j = 0; j < warm_up; ++j) word.push_back(letter_of(Pass::kForward, 0));
    for (int j = 0; j < m; ++j) {
      if (j + warm_up < m) word.push_back(letter_of(Pass::kForward, 0));
      word.push_back(letter_of(Pass::kInputGradient, 0));
      word.push_back(letter_of(Pass::kWeightGradient, 0));
    }
  }
  return words;
}

// List scheduling: of all passes that could run next, take the rank whose pass would end first, and run its
// pass that can start first: input gradients before forwards before weight gradients. A forward reserves
// memory for the later chunks of its micro-batch. nullopt at a dead end.
std::optional<Schedule> list_schedule(const SplitPipeline& pipeline) {
  struct Choice {
    Pass pass = Pass::kWeightGradient;
    int chunk = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
  };
  OrderBuilder order(pipeline);
  const int chunks = pipeline.shape.chunks;
  // The pass that a rank would run, and the earliest end of its candidates.
  const auto choose = [&](int rank) {
    std::optional<Choice> best;
    std::int64_t first_end = 0;
    const auto offer = [&](Pass pass, int chunk, std::int64_t arrival, std::int64_t time) {
      const std::int64_t start = std::max(order.end(rank), arrival);
      first_end = best ? std::min(first_end, start + time) : start + time;
      if (!best || start < best->start) best = {pass, chunk, start, start + time};
    };
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (!order.fed(Pass::kInputGradient, rank, chunk)) continue;
      offer(Pass::kInputGradient, chunk, order.arrival(Pass::kInputGradient, rank, chunk),
            pipeline.costs_of(rank, chunk).input_gradient);
    }
    for (int chunk = chunks - 1; chunk >= 0; --chunk) {
      if (!order.fed(Pass::kForward, rank, chunk) || !order.has_room(rank, chunks - chunk)) continue;
      offer(Pass::kForward, chunk, order.arrival(Pass::kForward, rank, chunk),
            pipeline.costs_of(rank, chunk).forward);
    }
    if (order.pending(rank) > 0) offer(Pass::kWeightGradient, 0, 0, order.oldest_time(rank));
    if (best) best->end = first_end;
    return best;
  };
  std::vector<std::optional<Choice>> choices;
  for (int rank = 0; rank < pipeline.shape.ranks; ++rank) choices.push_back(choose(rank));
  while (!order.complete()) {
    int next = -1;
    for (int rank = 0; rank < pipeline.shape.ranks; ++rank) {
      const auto& choice = choices[static_cast<std::size_t>(rank)];
      if (choice && (next < 0 || choice->end < choices[static_cast<std::size_t>(next)]->end)) next = rank;
    }
    if (next < 0) return std::nullopt;
    const Choice& choice = *choices[static_cast<std::size_t>(next)];
    if (choice.pass == Pass::kWeightGradient) {
      order.put_weight_gradient(next);
    } else {
      order.put(choice.pass, next, choice.chunk);
    }
    // Only the rank itself and the receiver of its output have new candidates.
    for (const int rank : {next, (next + 1) % pipeline.shape.ranks,
                           (next + pipeline.shape.ranks - 1) % pipeline.shape.ranks}) {
      choices[static_cast<std::size_t>(rank)] = choose(rank);
    }
  }
  return std::move(order).take("list");
}

// Late acceptance: a trial is kept when it is no worse than the order a fixed number of trials ago. Two
// orders are stored: the current one and the best.
class Improvement {
 public:
  Improvement(const SearchProblem& problem, std::uint64_t seed)
      : problem_(problem), player_(problem), lot_(seed) {}

  // nullopt where the words deadlock.
  std::optional<Order> play(RankWords words) {
    const auto length = player_.play(words);
    ++plays_;
    if (!length) return std::nullopt;
    return Order{.words = std::move(words), .length = *length};
  }

  // The best order found from `start` in at most `tries` trials; ends early at the bound. `kicks` moves are
  // made first, whatever their effect.
  Order improve(Order start, std::int64_t tries, std::int64_t bound, int kicks) {
    Order best = start;
    Order now = std::move(start);
    for (int i = 0; i < kicks; ++i) kick(now);
    std::vector<WordPlayer::Length> late(kMemory, now.length);
    (void)player_.play(now.words);
    std::vector<WordPlayer::Block> blocks = player_.critical_blocks(now.words);
    for (std::int64_t i = 0; i < tries && best.length.length > bound; ++i) {
      const Move move = propose(now.words, blocks);
      std::vector<Letter>& word = now.words[static_cast<std::size_t>(move.rank)];
      if (!apply(word, move)) continue;
      const auto length = player_.play(now.words);
      ++plays_;
      auto& then = late[static_cast<std::size_t>(i) % kMemory];
      if (!length || (length->length > then.length && length->length > now.length.length)) {
        shift(word, move.to, move.from);
        continue;
      }
      now.length = *length;
      blocks = player_.critical_blocks(now.words);
      then = now.length;
      if (now.length < best.length) best = now;
    }
    return best;
  }

  [[nodiscard]] std::int64_t plays() const { return plays_; }

 private:
  void kick(Order& order) {
    if (!player_.play(order.words)) return;
    const Move move = propose(order.words, player_.critical_blocks(order.words));
    std::vector<Letter>& word = order.words[static_cast<std::size_t>(move.rank)];
    if (!apply(word, move)) return;
    const auto length = player_.play(order.words);
    plays_ += 2;
    if (length) {
      order.length = *length;
    } else {
      shift(word, move.to, move.from);
    }
  }

  static constexpr std::size_t kMemory = 60;  // tries; late acceptance wants it small where tries are few

  struct Move {
    int rank = 0;
    int from = 0;
    int to = 0;
  };

  // Proposes a move: a pass of a critical block to its front, to its back, past either, or anywhere after it.
  Move propose(const RankWords& words, const std::vector<WordPlayer::Block>& blocks) {
    const auto& block = blocks[static_cast<std::size_t>(lot_.draw(0, static_cast<int>(blocks.size()) - 1))];
    const int last = static_cast<int>(words[static_cast<std::size_t>(block.rank)].size()) - 1;
    Move move{.rank = block.rank, .from = lot_.draw(block.first, block.last), .to = 0};
    switch (lot_.draw(0, 5)) {
      case 0:
        move.to = block.first;
        break;
      case 1:
        move.to = block.last;
        break;
      case 2:
        move.to = block.first - lot_.draw(1, 4);
        break;
      case 3:
        move.to = block.last + lot_.draw(1, 4);
        break;
      case 4:
        move.to = lot_.draw(move.from, last);
        break;
      default:
        move.to = move.from + (lot_.draw(0, 1) == 0 ? -1 : 1);
    }
    move.to = std::clamp(move.to, 0, last);
    return move;
  }

  static void shift(std::vector<Letter>& word, int from, int to) {
    const auto begin = word.begin();
    if (from < to) std::rotate(begin + from, begin + from + 1, begin + to + 1);
    if (from > to) std::rotate(begin + to, begin + from, begin + from + 1);
  }

  // Applies a move. False, with the word unchanged, when the move changes nothing or breaks the word.
  bool apply(std::vector<Letter>& word, const Move& move) {
    const auto [low, high] = std::minmax(move.from, move.to);
    const Letter moved = word[static_cast<std::size_t>(move.from)];
    bool changes = false;
    for (int i = low; i <= high && !changes; ++i) changes = word[static_cast<std::size_t>(i)] != moved;
    if (!changes) return false;
    shift(word, move.from, move.to);
    if (is_legal(word, problem_.pipeline)) return true;
    shift(word, move.to, move.from);
    return false;
  }

  const SearchProblem& problem_;
  WordPlayer player_;
  Lot lot_;
  std::int64_t plays_ = 0;
};

struct NamedStart {
  Order order;
  std::string name;         // empty: none of the named ones
  std::int64_t length = 0;  // as it is named: with whole backwards and its own order of micro-batches
};

std::int64_t length_of(const Evaluation& evaluation, SearchGoal goal) {
  return goal == SearchGoal::kSpan ? evaluation.span : evaluation.makespan;
}

std::vector<NamedStart> starts_of(const SearchProblem& problem, const ScheduleCosts& costs,
                                  Improvement& improvement) {
  const SplitPipeline& pipeline = problem.pipeline;
  std::vector<NamedStart> starts;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (kind.placement != pipeline.placement || kind.recomputes || !kind.flush) continue;
    if (kind.constraint(pipeline.shape)) continue;
    const Schedule schedule = generate(kind, pipeline.shape, costs);
    if (schedule.placement != pipeline.placement) continue;
    if (std::ranges::max(peak_in_flight(schedule)) > pipeline.memory_limit) continue;
    RankWords words = words_of(schedule, pipeline);
    if (!std::ranges::all_of(words, [&](const auto& word) { return is_legal(word, pipeline); })) continue;
    auto order = improvement.play(std::move(words));
    if (!order) continue;
    starts.push_back({.order = *std::move(order),
                      .name = std::string(kind.name),
                      .length = length_of(evaluate(schedule, costs), problem.goal)});
  }
  auto plain = improvement.play(pipeline.shape.chunks == 1 ? capped(pipeline) : one_by_one(pipeline.shape));
  SC_CHECK(plain.has_value(), "such an order runs under any limit");
  const std::int64_t length = plain->length.length;
  starts.push_back({.order = *std::move(plain), .name = {}, .length = length});
  if (const auto listed = list_schedule(pipeline)) {
    if (auto order = improvement.play(words_of(*listed, pipeline))) {
      const std::int64_t own = order->length.length;
      starts.push_back({.order = *std::move(order), .name = {}, .length = own});
    }
  }
  std::ranges::stable_sort(starts,
                           [](const auto& a, const auto& b) { return a.order.length < b.order.length; });
  return starts;
}

// The request's costs with a memory limit that is spelled out, and all activations kept until W.
ScheduleCosts spelled_out(const SearchRequest& request) {
  ScheduleCosts costs = request.costs;
  if (costs.memory_limit == 0) costs.memory_limit = request.shape.chunks * request.shape.micro_batches;
  costs.freed_by_input_gradient = 0;
  return costs;
}

}  // namespace

SearchProblem problem_of(const SearchRequest& request) {
  const ScheduleCosts costs = spelled_out(request);
  return {.pipeline = SplitPipeline::of(request.shape, request.placement, costs, costs.memory_limit),
          .goal = request.goal};
}

std::optional<ScheduleProblem> search_constraint(const SearchRequest& request) {
  if (auto problem = refuse_shape(request.shape)) return problem;
  if (request.placement == Placement::kV && request.shape.chunks != 2) {
    return ScheduleProblem{.message = std::to_string(request.shape.chunks) + " chunks a rank: a V has 2",
                           .hint = "use 2 chunks a rank, or the loop"};
  }
  if (request.placement != Placement::kLoop && request.placement != Placement::kV) {
    return ScheduleProblem{.message = "the search knows stages on a loop or on a V only",
                           .hint = "use one of them"};
  }
  constexpr int kMostChunks = 21;  // three letters each in a word of 64 bits
  if (request.shape.chunks > kMostChunks) {
    return ScheduleProblem{.message = std::to_string(request.shape.chunks) +
                                      " chunks a rank are more than the " + std::to_string(kMostChunks) +
                                      " that the search takes",
                           .hint = "use " + std::to_string(kMostChunks) + " or fewer"};
  }
  if (request.costs.memory_limit != 0 && request.costs.memory_limit < request.shape.chunks) {
    return ScheduleProblem{.message = "a memory limit of " + std::to_string(request.costs.memory_limit) +
                                      " activations cannot hold the " + std::to_string(request.shape.chunks) +
                                      " chunks of one micro-batch",
                           .hint = "allow " + std::to_string(request.shape.chunks) + " or more"};
  }
  return std::nullopt;
}

OrderSearchResult search_schedule(const SearchRequest& request) {
  if (const auto problem = search_constraint(request)) SC_CHECK(false, problem->message);
  const SearchProblem problem = problem_of(request);
  const ScheduleCosts costs = spelled_out(request);
  Improvement improvement(problem, request.seed);
  const std::vector<NamedStart> starts = starts_of(problem, costs, improvement);

  OrderSearchResult result;
  result.lower_bound = lower_bound(problem);
  Order best = starts.front().order;
  for (const NamedStart& start : starts) {
    if (start.name.empty() || (!result.best_named.empty() && start.length >= result.best_named_length))
      continue;
    result.best_named = start.name;
    result.best_named_length = start.length;
  }
  const std::int64_t passes = 3LL * problem.pipeline.stage_count() * request.shape.micro_batches;
  constexpr std::int64_t kMostExactPasses = 200;  // beyond, partial orders are too many to look at
  constexpr std::int64_t kRounds = 16;            // from the best starts in turn
  const std::int64_t tries = request.effort / passes / kRounds;
  for (std::int64_t round = 0; round < kRounds && best.length.length > result.lower_bound; ++round) {
    const Order& start =
        round % 2 == 0 ? best : starts[static_cast<std::size_t>(round / 2) % starts.size()].order;
    Order found =
        improvement.improve(start, tries, result.lower_bound, round < 2 ? 0 : 3 * static_cast<int>(round));
    if (found.length < best.length) best = std::move(found);
  }
  if (best.length.length > result.lower_bound && passes <= kMostExactPasses) {
    ExactResult exact = exact_search(problem, best.length.length, request.exact_nodes);
    if (exact.shorter) best = improvement.play(*std::move(exact.shorter)).value();
    if (exact.proven) result.lower_bound = best.length.length;
  }
  result.schedule = schedule_of(best.words, problem.pipeline, "search");
  result.evaluation = evaluate(result.schedule, costs);
  result.length = best.length.length;
  result.plays = improvement.plays();
  SC_CHECK(length_of(result.evaluation, request.goal) == result.length, "words and schedules last alike");
  return result;
}

OrderSearchResult search_placements(SearchRequest request) {
  request.placement = Placement::kLoop;
  OrderSearchResult loop = search_schedule(request);
  if (request.shape.chunks != 2) return loop;
  request.placement = Placement::kV;
  OrderSearchResult v = search_schedule(request);
  OrderSearchResult& best = v.length < loop.length ? v : loop;
  const bool v_named =
      !v.best_named.empty() && (loop.best_named.empty() || v.best_named_length < loop.best_named_length);
  const OrderSearchResult& named = v_named ? v : loop;
  best.lower_bound = std::min(loop.lower_bound, v.lower_bound);
  best.plays = loop.plays + v.plays;
  best.best_named_length = named.best_named_length;
  best.best_named = std::string(named.best_named);
  return std::move(best);
}

}  // namespace stagecraft
