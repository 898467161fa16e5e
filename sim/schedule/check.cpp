// check(): is this order whole, in its place, and free of deadlock?
//
// An order may come from a file, so nothing is assumed about it. The passes are sorted once with the place
// where they stand; all questions are look-ups in that list, which stays proportional to what was written,
// whatever the shape claims.
#include "base/check.hpp"

#include <algorithm>
#include <optional>

#include "sim/schedule/schedule.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostProblems = 20;  // a page of text; the rest would say the same

struct Place {
  std::size_t rank = 0;
  std::size_t position = 0;  // from 0 in the rank's order
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct PlacedAction {
  Action action;
  Place place;
  friend auto operator<=>(const PlacedAction&, const PlacedAction&) = default;
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

// All passes of a schedule, findable.
class PassIndex {
 public:
  explicit PassIndex(const Schedule& schedule) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const std::vector<Action>& order = schedule.ranks[rank];
      for (std::size_t position = 0; position < order.size(); ++position) {
        sorted_.push_back({.action = order[position], .place = {.rank = rank, .position = position}});
      }
    }
    std::ranges::sort(sorted_);
  }

  [[nodiscard]] const std::vector<PlacedAction>& sorted() const { return sorted_; }

  [[nodiscard]] std::optional<Place> find(const Action& action) const {
    const auto found = std::ranges::lower_bound(sorted_, action, {}, &PlacedAction::action);
    if (found == sorted_.end() || found->action != action) return std::nullopt;
    return found->place;
  }

  [[nodiscard]] bool has(const Action& action) const { return find(action).has_value(); }

 private:
  std::vector<PlacedAction> sorted_;
};

Action with(const Action& action, Pass pass) {
  return {.pass = pass, .stage = action.stage, .micro_batch = action.micro_batch};
}

// Problems up to kMostProblems, then one that says there are more.
class ProblemList {
 public:
  [[nodiscard]] bool full() const { return problems_.size() > kMostProblems; }
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  void add(ScheduleProblem problem) {
    if (full()) return;
    if (problems_.size() == kMostProblems) {
      problem = {.message = "and more problems like these",
                 .hint = "mend the first " + number(kMostProblems)};
    }
    problems_.push_back(std::move(problem));
  }
  [[nodiscard]] std::vector<ScheduleProblem> take() && { return std::move(problems_); }

 private:
  std::vector<ScheduleProblem> problems_;
};

// A pass that lies outside the shape, stands on the wrong rank, or stands twice.
void check_written_passes(const Schedule& schedule, const PassIndex& index, ProblemList& problems) {
  const PlacedAction* before = nullptr;
  for (const PlacedAction& pass : index.sorted()) {
    const auto& [action, place] = pass;
    const std::string subject = to_string(action) + ", " + name_of(place) + ": ";
    const int p = schedule.shape.ranks;
    if (action.stage < 0 || action.stage >= schedule.stages()) {
      problems.add(
          {.message = subject + "no stage " + number(action.stage) + " among " + number(schedule.stages()),
           .hint = "stages count from 0; there are ranks times chunks of them"});
    } else if (action.micro_batch < 0 || action.micro_batch >= schedule.shape.micro_batches) {
      problems.add({.message = subject + "no micro-batch " + number(action.micro_batch) + " among " +
                               number(schedule.shape.micro_batches),
                    .hint = "micro-batches count from 0"});
    } else if (place.rank != static_cast<std::size_t>(action.stage % p)) {
      problems.add({.message = subject + "stage " + number(action.stage) + " lives on rank " +
                               number(action.stage % p) + ", not on rank " + number(place.rank),
                    .hint = "stage s lives on rank s mod " + number(p)});
    }
    if (before != nullptr && before->action == action) {
      problems.add(
          {.message = to_string(action) + " runs twice: " + name_of(before->place) + " and " + name_of(place),
           .hint = "drop one of them"});
    }
    before = &pass;
  }
}

// What one micro-batch lacks on one stage: a forward, and a backward that is either whole or in two halves.
void check_one_pair(const PassIndex& index, const Action& forward, ProblemList& problems) {
  const Action whole = with(forward, Pass::kBackward);
  const Action input = with(forward, Pass::kInputGradient);
  const Action weight = with(forward, Pass::kWeightGradient);
  const bool has_whole = index.has(whole);
  const bool has_input = index.has(input);
  const bool has_weight = index.has(weight);
  const std::string pair =
      "micro-batch " + number(forward.micro_batch) + " on stage " + number(forward.stage);
  const std::string halves = to_string(input) + " and " + to_string(weight);
  if (!index.has(forward)) {
    problems.add({.message = pair + " has no forward", .hint = "add " + to_string(forward)});
  }
  if (has_whole && (has_input || has_weight)) {
    problems.add({.message = pair + " has a whole backward and " + to_string(has_input ? input : weight),
                  .hint = "keep " + to_string(whole) + ", or " + halves});
  } else if (!has_whole && !has_input && !has_weight) {
    problems.add(
        {.message = pair + " has no backward", .hint = "add " + to_string(whole) + ", or " + halves});
  } else if (!has_whole && has_input != has_weight) {
    problems.add({.message = pair + " has " + to_string(has_input ? input : weight) + " without " +
                             to_string(has_input ? weight : input),
                  .hint = "add " + to_string(has_input ? weight : input)});
  }
}

void check_completeness(const Schedule& schedule, const PassIndex& index, ProblemList& problems) {
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    for (int j = 0; j < schedule.shape.micro_batches; ++j) {
      if (problems.full()) return;  // so that a huge shape with an empty order ends at once
      check_one_pair(index, {.pass = Pass::kForward, .stage = stage, .micro_batch = j}, problems);
    }
  }
}

// Plays a whole order without time: every rank runs as far as it can, again and again.
class Player {
 public:
  Player(const Schedule& schedule, const PassIndex& index)
      : schedule_(&schedule), index_(&index), next_(schedule.ranks.size(), 0) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < next_.size(); ++rank) moved = advance(rank) || moved;
    }
  }

  // Who waits for whom in a ring, beginning with the least action of it; empty when every rank got to its
  // end.
  [[nodiscard]] std::vector<Action> cycle() const {
    std::size_t rank = 0;
    while (rank < next_.size() && finished(rank)) ++rank;
    if (rank == next_.size()) return {};
    std::vector<std::size_t> path;  // ranks that wait; the first to come up again closes the ring
    while (std::ranges::find(path, rank) == path.end()) {
      path.push_back(rank);
      rank = index_->find(missing(rank))->rank;
    }
    std::vector<Action> heads;
    for (auto it = std::ranges::find(path, rank); it != path.end(); ++it) heads.push_back(head(*it));
    std::ranges::rotate(heads, std::ranges::min_element(heads));
    return heads;
  }

  // The first need of the blocked pass at the head of this rank. requires that the rank is blocked.
  [[nodiscard]] Action missing(std::size_t rank) const {
    for (const Action& need : needs(head(rank))) {
      if (!done(need)) return need;
    }
    SC_CHECK(false, "a rank stopped although its next pass needs nothing");
    return {};
  }

 private:
  [[nodiscard]] bool finished(std::size_t rank) const { return next_[rank] == schedule_->ranks[rank].size(); }
  [[nodiscard]] const Action& head(std::size_t rank) const { return schedule_->ranks[rank][next_[rank]]; }

  [[nodiscard]] bool done(const Action& action) const {
    const auto place = index_->find(action);
    SC_CHECK(place.has_value(), "only a whole order is played");
    return place->position < next_[place->rank];
  }

  bool advance(std::size_t rank) {
    const std::size_t before = next_[rank];
    while (!finished(rank) &&
           std::ranges::all_of(needs(head(rank)), [this](const Action& a) { return done(a); })) {
      ++next_[rank];
    }
    return next_[rank] > before;
  }

  // The gradient of the stage after `action` leaves with its I, or with B where the backward is whole.
  [[nodiscard]] Action next_gradient(const Action& action) const {
    Action gradient = action;
    ++gradient.stage;
    gradient.pass = Pass::kBackward;
    if (!index_->has(gradient)) gradient.pass = Pass::kInputGradient;
    return gradient;
  }

  [[nodiscard]] std::vector<Action> needs(const Action& action) const {
    switch (action.pass) {
      case Pass::kForward: {
        Action before = action;
        --before.stage;
        return action.stage > 0 ? std::vector{before} : std::vector<Action>{};
      }
      case Pass::kRecompute:
        return {with(action, Pass::kForward)};
      case Pass::kWeightGradient:
        return {with(action, Pass::kInputGradient)};
      case Pass::kBackward:
      case Pass::kInputGradient:
        break;
    }
    std::vector<Action> found{with(action, Pass::kForward)};
    if (index_->has(with(action, Pass::kRecompute))) found.push_back(with(action, Pass::kRecompute));
    if (action.stage + 1 < schedule_->stages()) found.push_back(next_gradient(action));
    return found;
  }

  const Schedule* schedule_;
  const PassIndex* index_;
  std::vector<std::size_t> next_;  // [rank] -> position of the first pass not run
};

void check_progress(const Schedule& schedule, const PassIndex& index, ProblemList& problems) {
  const Player player(schedule, index);
  const std::vector<Action> cycle = player.cycle();
  if (cycle.empty()) return;
  std::string message = "deadlock: " + to_string(cycle.front());
  std::string way_out;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Action& next = cycle[(i + 1) % cycle.size()];
    const Action need = player.missing(index.find(cycle[i])->rank);
    message += (i == 0 ? " waits for " : ", which waits for ") + to_string(need);
    if (need == next) continue;  // the other rank waits at this very pass
    const std::string rank = number(index.find(next)->rank);
    message += ", which comes after " + to_string(next) + " on rank " + rank;
    if (!way_out.empty()) continue;
    way_out =
        "run " + to_string(need) + " before " + to_string(next) + " on rank " + rank + " to break this ring";
  }
  problems.add({.message = std::move(message), .hint = std::move(way_out)});
}

}  // namespace

std::vector<ScheduleProblem> check(const Schedule& schedule) {
  if (auto problem = refuse_shape(schedule.shape)) return {*std::move(problem)};
  const auto p = static_cast<std::size_t>(schedule.shape.ranks);
  if (schedule.ranks.size() != p) {
    return {{.message = number(schedule.ranks.size()) + " orders for " + number(p) + " ranks",
             .hint = "give one order a rank"}};
  }
  const PassIndex index(schedule);
  ProblemList problems;
  check_written_passes(schedule, index, problems);
  check_completeness(schedule, index, problems);
  if (problems.empty())
    check_progress(schedule, index, problems);  // a pass that is missing blocks, but is no ring
  return std::move(problems).take();
}

}  // namespace stagecraft
