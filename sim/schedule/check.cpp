// check(): is this order whole, in its place, and free of deadlock?
//
// An order may come from a file, so nothing is assumed about it. Its passes are sorted once with their
// positions; the memory depends on the passes that were written, whatever the shape claims. Only a complete
// order is played.
#include "base/check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "sim/schedule/schedule.hpp"
#include "sim/schedule/shape.hpp"
#include "sim/schedule/unrolled.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostProblems = 20;  // a page of text; the rest would say the same

struct Place {
  std::size_t rank = 0;
  std::size_t position = 0;  // from 0 in the rank's order
};

struct PlacedAction {
  Action action;
  Place place;
};

std::string number(std::size_t n) {
  return std::to_string(n);
}
std::string number(int n) {
  return std::to_string(n);
}

// "op 3 of rank 0": a person counts from 1, ranks count from 0.
std::string name_of(const Place& place) {
  return "op " + number(place.position + 1) + " of rank " + number(place.rank);
}

// Sorted by stage, micro-batch, pass and position, so the passes of one pair of stage and micro-batch are
// adjacent, and so are duplicates.
std::vector<PlacedAction> sorted_by_pair(const Schedule& schedule) {
  std::vector<PlacedAction> sorted;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<Action>& order = schedule.ranks[rank];
    for (std::size_t i = 0; i < order.size(); ++i) {
      sorted.push_back({.action = order[i], .place = {.rank = rank, .position = i}});
    }
  }
  std::ranges::sort(sorted, [](const PlacedAction& a, const PlacedAction& b) {
    return std::tie(a.action.stage, a.action.micro_batch, a.action.pass, a.place.rank, a.place.position) <
           std::tie(b.action.stage, b.action.micro_batch, b.action.pass, b.place.rank, b.place.position);
  });
  return sorted;
}

Action with(const Action& action, Pass pass) {
  return {.pass = pass, .stage = action.stage, .micro_batch = action.micro_batch};
}

// Problems up to kMostProblems, then one that says there are more.
class ProblemList {
 public:
  [[nodiscard]] bool full() const { return problems_.size() > kMostProblems; }
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  void add(ScheduleProblem problem, std::optional<Place> place = std::nullopt) {
    if (full()) return;
    if (problems_.size() == kMostProblems) {
      problem = {.message = "and more problems like these",
                 .hint = "mend the first " + number(kMostProblems)};
      place.reset();
    }
    problems_.push_back({.problem = std::move(problem), .place = {}});
    if (place) problems_.back().place = {.rank = static_cast<int>(place->rank), .position = place->position};
  }
  [[nodiscard]] std::vector<PlacedProblem> take() && { return std::move(problems_); }

 private:
  std::vector<PlacedProblem> problems_;
};

bool same_pass(const Action& a, const Action& b) {
  return std::tie(a.pass, a.stage, a.micro_batch) == std::tie(b.pass, b.stage, b.micro_batch);
}

// Where a stage lives, in words.
std::string rule_of(const Schedule& schedule) {
  const std::string p = number(schedule.shape.ranks);
  const std::string last = number(schedule.shape.ranks - 1);
  switch (schedule.placement) {
    case Placement::kLoop:
      return "stage s lives on rank s mod " + p;
    case Placement::kV:
    case Placement::kWave:
      return "stages run down the ranks 0 to " + last + " and back, chunk by chunk";
    case Placement::kBidirectional:
      return "micro-batches below " + number(schedule.shape.micro_batches / 2) +
             " have stage s on rank s, the others on rank " + last + " - s";
    case Placement::kBidirectionalUnits:
      return "micro-batches j with j mod " + p + " below " + number(schedule.shape.ranks / 2) +
             " have stage s on rank s, the others on rank " + last + " - s";
  }
  SC_CHECK(false, "a placement outside the enumeration");
  return {};
}

// The mistake in the position of a pass; nullopt when its stage and micro-batch exist and belong to this
// rank.
std::optional<ScheduleProblem> misplaced(const Schedule& schedule, const PlacedAction& pass) {
  const auto& [action, place] = pass;
  const bool stage_exists = action.stage >= 0 && action.stage < schedule.stages();
  const bool micro_batch_exists =
      action.micro_batch >= 0 && action.micro_batch < schedule.shape.micro_batches;
  const int home =
      stage_exists && micro_batch_exists ? schedule.rank_of(action.stage, action.micro_batch) : -1;
  if (home >= 0 && place.rank == static_cast<std::size_t>(home)) return std::nullopt;
  const std::string subject = to_string(action) + ", " + name_of(place) + ": ";
  if (!stage_exists) {
    return ScheduleProblem{
        .message = subject + "no stage " + number(action.stage) + " among " + number(schedule.stages()),
        .hint = "stages count from 0; there are ranks times chunks of them"};
  }
  if (!micro_batch_exists) {
    return ScheduleProblem{.message = subject + "no micro-batch " + number(action.micro_batch) + " among " +
                                      number(schedule.shape.micro_batches),
                           .hint = "micro-batches count from 0"};
  }
  return ScheduleProblem{.message = subject + "stage " + number(action.stage) + " lives on rank " +
                                    number(home) + ", not on rank " + number(place.rank),
                         .hint = rule_of(schedule)};
}

void check_written_passes(const Schedule& schedule, std::span<const PlacedAction> sorted,
                          ProblemList& problems) {
  const PlacedAction* before = nullptr;
  for (const PlacedAction& pass : sorted) {
    if (auto problem = misplaced(schedule, pass)) problems.add(*std::move(problem), pass.place);
    if (before != nullptr && same_pass(before->action, pass.action)) {
      problems.add({.message = to_string(pass.action) + " runs twice: " + name_of(before->place) + " and " +
                               name_of(pass.place),
                    .hint = "drop one of them"},
                   pass.place);
    }
    before = &pass;
  }
}

// Does `later` depend on `earlier`? Both are of one stage and micro-batch, or `later` needs the output of the
// stage before or the gradient of the stage after.
bool needs(const Action& later, const Action& earlier) {
  if (later.micro_batch != earlier.micro_batch) return false;
  const bool backward = gives_gradient(later.pass);
  const bool gradient = gives_gradient(earlier.pass);
  if (later.stage != earlier.stage) {
    return later.pass == Pass::kForward ? earlier.pass == Pass::kForward && earlier.stage == later.stage - 1
                                        : backward && gradient && earlier.stage == later.stage + 1;
  }
  return true;  // one pair of stage and micro-batch runs in one order only
}

// A fused pair is two passes that do not need each other.
void check_fused_pairs(const Schedule& schedule, ProblemList& problems) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<Action>& order = schedule.ranks[rank];
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (!order[i].fused) continue;
      const Place place{.rank = rank, .position = i};
      const std::string subject = to_string(order[i]) + ", " + name_of(place);
      if (i + 1 == order.size()) {
        problems.add({.message = subject + ": fused with a pass that is not there",
                      .hint = "write the pair, or the pass alone"},
                     place);
      } else if (order[i + 1].fused) {
        problems.add({.message = subject + ": fused with " + to_string(order[i + 1]) +
                                 ", which is fused with a third pass",
                      .hint = "fuse two passes at most"},
                     place);
      } else if (needs(order[i + 1], order[i]) || needs(order[i], order[i + 1])) {
        problems.add({.message = subject + ": fused with " + to_string(order[i + 1]) +
                                 ", but one of the two needs the other",
                      .hint = "write the two passes one after the other"},
                     place);
      }
    }
  }
}

// Checks one pair of stage and micro-batch: it needs a forward, and a backward that is either whole or split.
// `passes` are those of the pair.
void check_one_pair(const Action& forward, std::span<const PlacedAction> passes, ProblemList& problems) {
  std::array<bool, kPassCount> has{};
  for (const PlacedAction& pass : passes) has[static_cast<std::size_t>(pass.action.pass)] = true;
  const bool has_forward = has[static_cast<std::size_t>(Pass::kForward)];
  const bool has_whole = has[static_cast<std::size_t>(Pass::kBackward)];
  const bool has_input = has[static_cast<std::size_t>(Pass::kInputGradient)];
  const bool has_weight = has[static_cast<std::size_t>(Pass::kWeightGradient)];
  const bool one_backward = has_input == has_weight && has_whole != has_input;
  if (has_forward && one_backward) return;

  const Action whole = with(forward, Pass::kBackward);
  const Action input = with(forward, Pass::kInputGradient);
  const Action weight = with(forward, Pass::kWeightGradient);
  const std::string pair =
      "micro-batch " + number(forward.micro_batch) + " on stage " + number(forward.stage);
  const std::string halves = to_string(input) + " and " + to_string(weight);
  const std::optional<Place> place = passes.empty() ? std::nullopt : std::optional(passes.front().place);
  if (!has_forward)
    problems.add({.message = pair + " has no forward", .hint = "add " + to_string(forward)}, place);
  if (one_backward) return;
  if (has_whole) {
    problems.add({.message = pair + " has a whole backward and " + to_string(has_input ? input : weight),
                  .hint = "keep " + to_string(whole) + ", or " + halves},
                 place);
  } else if (!has_input && !has_weight) {
    problems.add({.message = pair + " has no backward", .hint = "add " + to_string(whole) + ", or " + halves},
                 place);
  } else {
    const std::string present = to_string(has_input ? input : weight);
    const std::string absent = to_string(has_input ? weight : input);
    problems.add({.message = pair + " has " + present + " without " + absent, .hint = "add " + absent},
                 place);
  }
}

void check_completeness(const Schedule& schedule, std::span<const PlacedAction> sorted,
                        ProblemList& problems) {
  const auto pair_of = [](const PlacedAction& pass) {
    return std::pair(pass.action.stage, pass.action.micro_batch);
  };
  auto begin = sorted.begin();
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    for (int j = 0; j < schedule.shape.micro_batches; ++j) {
      if (problems.full()) return;  // ends early for a huge shape with an empty order
      const std::pair pair(stage, j);
      while (begin != sorted.end() && pair_of(*begin) < pair) ++begin;  // outside the shape, reported before
      auto end = begin;
      while (end != sorted.end() && pair_of(*end) == pair) ++end;
      check_one_pair({.pass = Pass::kForward, .stage = stage, .micro_batch = j}, {begin, end}, problems);
      begin = end;
    }
  }
}

// Plays a whole order without time: every rank runs as far as it can, again and again.
//
// A whole order has each pass at most once and on the rank of its stage, so one number a pass finds it.
class Player {
 public:
  explicit Player(const Schedule& schedule)
      : schedule_(&schedule), next_(schedule.ranks.size(), 0), position_(slots(schedule), kAbsent) {
    for (const std::vector<Action>& order : schedule.ranks) {
      for (std::size_t i = 0; i < order.size(); ++i)
        position_[slot(order[i])] = static_cast<std::uint32_t>(i);
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < next_.size(); ++rank) moved = advance(rank) || moved;
    }
  }

  // The passes at which ranks wait for each other in a ring, beginning with the least; empty when every rank
  // got to its end.
  [[nodiscard]] std::vector<Action> ring() const {
    std::size_t rank = 0;
    while (rank < next_.size() && finished(rank)) ++rank;
    if (rank == next_.size()) return {};
    std::vector<std::size_t> path;  // waiting ranks; the first repeated rank closes the ring
    while (std::ranges::find(path, rank) == path.end()) {
      path.push_back(rank);
      rank = rank_of(missing(blocked(rank)));
    }
    std::vector<Action> heads;
    for (auto it = std::ranges::find(path, rank); it != path.end(); ++it) heads.push_back(blocked(*it));
    std::rotate(heads.begin(), std::ranges::min_element(heads), heads.end());
    return heads;
  }

  // The pass that a pass waits for. requires that it is one of ring().
  [[nodiscard]] Action missing(const Action& action) const {
    const std::optional<Action> need = first_unmet(action);
    SC_CHECK(need.has_value(), "a rank stopped although its next pass needs nothing");
    return *need;
  }

  [[nodiscard]] std::size_t rank_of(const Action& action) const {
    return static_cast<std::size_t>(schedule_->rank_of(action.stage, action.micro_batch));
  }

  [[nodiscard]] std::size_t position_of(const Action& action) const { return position_[slot(action)]; }

  // Does `a` precede `b` in the order of their rank?
  [[nodiscard]] bool precedes(const Action& a, const Action& b) const {
    return position_[slot(a)] < position_[slot(b)];
  }

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;

  static std::size_t slots(const Schedule& schedule) {
    return kPassCount * static_cast<std::size_t>(schedule.stages()) *
           static_cast<std::size_t>(schedule.shape.micro_batches);
  }
  [[nodiscard]] std::size_t slot(const Action& action) const {
    const auto m = static_cast<std::size_t>(schedule_->shape.micro_batches);
    const std::size_t pair =
        static_cast<std::size_t>(action.stage) * m + static_cast<std::size_t>(action.micro_batch);
    return pair * kPassCount + static_cast<std::size_t>(action.pass);
  }

  [[nodiscard]] bool finished(std::size_t rank) const { return next_[rank] == schedule_->ranks[rank].size(); }
  // The passes that the rank runs next: one, or a fused pair.
  [[nodiscard]] std::span<const Action> head(std::size_t rank) const {
    const std::vector<Action>& order = schedule_->ranks[rank];
    return std::span(order).subspan(next_[rank], order[next_[rank]].fused ? 2 : 1);
  }
  [[nodiscard]] bool ready(std::size_t rank) const {
    return std::ranges::none_of(head(rank), [&](const Action& a) { return first_unmet(a).has_value(); });
  }
  // The waiting pass at the head. requires that the rank is stuck.
  [[nodiscard]] const Action& blocked(std::size_t rank) const {
    const std::span<const Action> next = head(rank);
    return first_unmet(next.front()) ? next.front() : next.back();
  }
  [[nodiscard]] bool exists(const Action& action) const { return position_[slot(action)] != kAbsent; }
  [[nodiscard]] bool waits_for(const Action& need) const {
    return position_[slot(need)] >= next_[rank_of(need)];
  }

  bool advance(std::size_t rank) {
    const std::size_t before = next_[rank];
    while (!finished(rank) && ready(rank)) next_[rank] += head(rank).size();
    return next_[rank] > before;
  }

  // A backward needs its forward, its recompute if there is one, and the gradient of the stage after it,
  // which leaves with I where the backward is split. Everything else needs one pass of the same micro-batch.
  [[nodiscard]] std::optional<Action> first_unmet(const Action& action) const {
    Action need = with(action, Pass::kForward);
    if (action.pass == Pass::kForward) {
      if (action.stage == 0) return std::nullopt;
      --need.stage;
    }
    if (action.pass == Pass::kWeightGradient) need.pass = Pass::kInputGradient;
    if (waits_for(need)) return need;
    if (action.pass != Pass::kBackward && action.pass != Pass::kInputGradient) return std::nullopt;

    need.pass = Pass::kRecompute;
    if (exists(need) && waits_for(need)) return need;
    if (action.stage + 1 == schedule_->stages()) return std::nullopt;
    ++need.stage;
    need.pass = Pass::kBackward;
    if (!exists(need)) need.pass = Pass::kInputGradient;
    return waits_for(need) ? std::optional(need) : std::nullopt;
  }

  const Schedule* schedule_;
  std::vector<std::size_t> next_;        // [rank] -> position of the first pass not run
  std::vector<std::uint32_t> position_;  // [slot] -> position in its rank's order
};

void check_progress(const Schedule& schedule, ProblemList& problems) {
  const Player player(schedule);
  const std::vector<Action> ring = player.ring();
  if (ring.empty()) return;
  std::string message = "deadlock: " + to_string(ring.front());
  std::string way_out;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Action& next = ring[(i + 1) % ring.size()];
    const Action need = player.missing(ring[i]);
    message += (i == 0 ? " waits for " : ", which waits for ") + to_string(need);
    if (same_pass(need, next)) continue;  // the other rank waits at this very pass
    const std::string rank = number(player.rank_of(next));
    const bool in_front = player.precedes(need, next);  // the two are a fused pair
    message +=
        (in_front ? ", which is fused with " : ", which comes after ") + to_string(next) + " on rank " + rank;
    if (!way_out.empty()) continue;
    way_out =
        "run " + to_string(need) + " before " + to_string(next) + " on rank " + rank + " to break this ring";
  }
  const Action& first = ring.front();
  const Place place{.rank = player.rank_of(first), .position = player.position_of(first)};
  problems.add({.message = std::move(message), .hint = std::move(way_out)}, place);
}

// Is every pair of stage and micro-batch complete, once and on its rank? The order itself is not checked.
// After a false answer the slow path finds the mistake.
bool plainly_whole(const Schedule& schedule) {
  constexpr std::uint8_t kWhole = 1 << 0 | 1 << 1;
  constexpr std::uint8_t kSplit = 1 << 0 | 1 << 2 | 1 << 3;
  constexpr std::uint8_t kAgain = 1 << 4;
  const auto m = static_cast<std::size_t>(schedule.shape.micro_batches);
  const std::size_t pairs = static_cast<std::size_t>(schedule.stages()) * m;
  std::size_t passes = 0;
  for (const std::vector<Action>& order : schedule.ranks) passes += order.size();
  if (passes < 2 * pairs) return false;  // allocates memory only where an order fills it
  std::vector<std::uint8_t> has(pairs, 0);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const Action& action : schedule.ranks[rank]) {
      if (action.stage < 0 || action.stage >= schedule.stages() || action.micro_batch < 0 ||
          action.micro_batch >= schedule.shape.micro_batches)
        return false;
      if (static_cast<std::size_t>(schedule.rank_of(action.stage, action.micro_batch)) != rank) return false;
      std::uint8_t& pair =
          has[static_cast<std::size_t>(action.stage) * m + static_cast<std::size_t>(action.micro_batch)];
      const auto bit = static_cast<std::uint8_t>(1 << static_cast<int>(action.pass));
      if ((pair & bit) != 0) return false;
      pair = static_cast<std::uint8_t>(pair | bit);
    }
  }
  return std::ranges::all_of(has, [](std::uint8_t pair) {
    const int without_again = pair & ~kAgain;
    return without_again == kWhole || without_again == kSplit;
  });
}

}  // namespace

std::vector<PlacedProblem> check_placed(const Schedule& schedule) {
  if (auto problem = refuse_shape(schedule.shape)) return {{.problem = *std::move(problem), .place = {}}};
  const auto p = static_cast<std::size_t>(schedule.shape.ranks);
  if (schedule.ranks.size() != p) {
    return {{.problem = {.message = number(schedule.ranks.size()) + " orders for " + number(p) + " ranks",
                         .hint = "give one order a rank"},
             .place = {}}};
  }
  ProblemList problems;
  check_fused_pairs(schedule, problems);
  if (!plainly_whole(schedule)) {
    const std::vector<PlacedAction> sorted = sorted_by_pair(schedule);
    check_written_passes(schedule, sorted, problems);
    check_completeness(schedule, sorted, problems);
  }
  if (problems.empty()) {  // a pass that is missing blocks, but is no ring
    check_progress(schedule.flush ? schedule : unrolled(schedule, 3), problems);
  }
  return std::move(problems).take();
}

std::vector<ScheduleProblem> check(const Schedule& schedule) {
  std::vector<ScheduleProblem> problems;
  for (PlacedProblem& placed : check_placed(schedule)) problems.push_back(std::move(placed.problem));
  return problems;
}

}  // namespace stagecraft
