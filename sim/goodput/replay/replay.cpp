#include "sim/goodput/replay/replay.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"

namespace stagecraft {
namespace {

// A stretch of time that is a step or a pause, whatever state the job is in.
struct Stretch {
  Duration start{};
  Duration end{};
  const ReplayStep* step = nullptr;  // nullptr: a pause for a checkpoint
};

// Stretches by start time, without overlap: under published rules a new step may start while a pause of the
// old shape lasts.
std::vector<Stretch> stretches_of(const Replay& replay, Duration from) {
  std::vector<Stretch> all;
  all.reserve(replay.steps.size() + replay.checkpoints.size());
  for (const ReplayStep& step : replay.steps)
    all.push_back({.start = step.start, .end = step.end, .step = &step});
  for (const Replay::Pause& pause : replay.checkpoints)
    all.push_back({.start = pause.start, .end = pause.end});
  std::stable_sort(all.begin(), all.end(),
                   [](const Stretch& a, const Stretch& b) { return a.start < b.start; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i + 1 < all.size()) all[i].end = std::min(all[i].end, all[i + 1].start);
    all[i].start = std::max(all[i].start, from);
    all[i].end = std::clamp(all[i].end, all[i].start, std::max(all[i].start, replay.end));
  }
  return all;
}

Phase phase_of(ReplayState state) {
  switch (state) {
    case ReplayState::kStopped:
      return Phase::kIdle;
    case ReplayState::kRendezvous:
      return Phase::kReconfigure;
    case ReplayState::kRunning:
      return Phase::kTraining;
  }
  SC_CHECK(false, "a state without a phase");
  return Phase::kIdle;
}

// Charges a lost step to the cause of the first stop that comes after it, if any.
void lose(const Replay& replay, Duration end, Duration length, Account& account) {
  account[Bucket::kLostWork] += length;
  const auto stop = std::ranges::lower_bound(replay.stops, end, {}, &Replay::Stop::time);
  if (stop != replay.stops.end()) account.causes.at(as_index(stop->cause)).lost_work += length;
}

// Puts [start, end) into the buckets of the job's states; walks forward with `at_`.
class Gaps {
 public:
  explicit Gaps(const Replay& replay) : replay_(replay), states_(replay.states) {}

  void fill(Duration start, Duration end, Account& account) {
    while (start < end) {
      while (at_ + 1 < states_.size() && states_[at_ + 1].time <= start) ++at_;
      const Duration until = at_ + 1 < states_.size() ? std::min(end, states_[at_ + 1].time) : end;
      const Phase phase = phase_of(states_[at_].state);
      if (phase == Phase::kTraining)
        lose(replay_, until, until - start, account);
      else
        account[bucket_of(phase)] += until - start;
      start = until;
    }
  }

 private:
  const Replay& replay_;
  const std::vector<Replay::Since>& states_;
  std::size_t at_ = 0;
};

void count_stops(const Replay& replay, Duration from, Account& account) {
  account.failures = static_cast<std::int64_t>(replay.stops.size());
  for (const Replay::Stop& stop : replay.stops) {
    CauseAccount& cause = account.causes.at(as_index(stop.cause));
    ++cause.failures;
    const auto stopped = std::ranges::lower_bound(replay.states, stop.time, {}, &Replay::Since::time);
    const auto resumed =
        std::ranges::find(stopped, replay.states.end(), ReplayState::kRunning, &Replay::Since::state);
    const Duration until = resumed != replay.states.end() ? resumed->time : replay.end;
    cause.down += std::max(until, from) - std::max(stop.time, from);
  }
}

// Stalls that led to training again.
void count_restarts(const Replay& replay, Account& account) {
  std::optional<Duration> down;
  for (const Replay::Since& since : replay.states) {
    if (since.state == ReplayState::kRunning && down) {
      ++account.restarts;
      account.recovering += since.time - *down;
      down.reset();
    } else if (since.state != ReplayState::kRunning && replay.start && since.time > *replay.start && !down) {
      down = since.time;
    }
  }
}

// The states of the job, with pauses cut out of training.
class TimelineMaker {
 public:
  TimelineMaker(const Replay& replay, const ReplayPrices& prices) : replay_(replay), prices_(prices) {}

  std::vector<TimelineRow> rows() {
    for (std::size_t i = 0; i < replay_.states.size(); ++i) {
      const bool last = i + 1 == replay_.states.size();
      state(replay_.states[i].state, replay_.states[i].time, last ? replay_.end : replay_.states[i + 1].time);
    }
    return std::move(rows_);
  }

 private:
  void state(ReplayState state, Duration start, Duration end) {
    while (state == ReplayState::kRunning && pause_ < replay_.checkpoints.size() &&
           replay_.checkpoints[pause_].start < end) {
      const Replay::Pause& pause = replay_.checkpoints[pause_++];
      add(Phase::kTraining, start, pause.start);
      add(Phase::kCheckpoint, std::max(start, pause.start), std::min(pause.end, end));
      start = std::max(start, std::min(pause.end, end));
    }
    add(phase_of(state), start, end);
  }

  void add(Phase phase, Duration start, Duration end) {
    start = std::max(start, prices_.from);
    if (end <= start) return;
    while (step_ < replay_.steps.size() && replay_.steps[step_].end <= end) ++step_;
    while (count_ < replay_.counts.size() && replay_.counts[count_].time <= start) ++count_;
    rows_.push_back({.phase = phase,
                     .start = start,
                     .end = end,
                     .nodes = count_ == 0 ? 0 : replay_.counts[count_ - 1].nodes,
                     .samples = static_cast<std::int64_t>(step_) * prices_.samples_per_step});
  }

  const Replay& replay_;
  const ReplayPrices& prices_;
  std::vector<TimelineRow> rows_;
  std::size_t pause_ = 0, step_ = 0, count_ = 0;  // the next ones
};

}  // namespace

std::vector<NodeChange> changes_of(const History& history) {
  std::vector<NodeChange> changes;
  if (history.all_up_at_start)
    for (int node = 0; node < history.nodes; ++node) changes.push_back({.node = node});
  for (const Incident& incident : history.incidents) {
    if (incident.kind == IncidentKind::kAdd)
      changes.push_back({.time = incident.time, .node = incident.node, .ready = incident.due});
    if (incident.kind == IncidentKind::kRemove)
      changes.push_back(
          {.time = incident.time, .joins = false, .node = incident.node, .cause = incident.cause});
  }
  return changes;
}

std::int64_t Replay::kept_steps() const {
  return std::count_if(steps.begin(), steps.end(), [](const ReplayStep& step) { return step.kept; });
}

Account account_of(const Replay& replay, const ReplayPrices& prices) {
  SC_CHECK(prices.ideal_step > Duration{} && prices.from >= Duration{} && prices.from <= replay.end,
           "an account needs an ideal and a stretch of time");
  Account account;
  account.horizon = replay.end - prices.from;
  account.causes.resize(prices.causes);
  Gaps gaps(replay);
  Duration now = prices.from;
  for (const Stretch& stretch : stretches_of(replay, prices.from)) {
    gaps.fill(now, stretch.start, account);
    now = std::max(now, stretch.end);
    const Duration length = stretch.end - stretch.start;
    if (stretch.step == nullptr) {
      account[Bucket::kCheckpoint] += length;
    } else if (stretch.step->kept) {
      const Duration productive = std::min(length, prices.ideal_step);
      account[Bucket::kProductive] += productive;
      account[Bucket::kDegraded] += length - productive;
    } else {
      lose(replay, stretch.end, length, account);
    }
  }
  gaps.fill(now, replay.end, account);
  account.steps = replay.kept_steps();
  account.samples = account.steps * prices.samples_per_step;
  account.undone_steps = static_cast<std::int64_t>(replay.steps.size()) - account.steps;
  count_stops(replay, prices.from, account);
  count_restarts(replay, account);
  if (prices.timeline) account.timeline = TimelineMaker(replay, prices).rows();
  SC_CHECK(account.total() == account.horizon, "every instant belongs to one bucket");
  return account;
}

Duration published_step(std::int64_t samples, double samples_per_second) {
  constexpr double kShortest = 1, kOfNoThroughput = 1e12;  // ms
  if (samples_per_second <= 0) return std::chrono::milliseconds(static_cast<std::int64_t>(kOfNoThroughput));
  const double time = std::floor(1000.0 * static_cast<double>(samples) / samples_per_second);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(time, kShortest, kOfNoThroughput)));
}

}  // namespace stagecraft
