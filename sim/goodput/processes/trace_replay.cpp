#include "sim/goodput/processes/trace_replay.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"

namespace stagecraft {

namespace {

// At equal times additions precede removals in a history, so a fault of zero duration would end before it
// began.
constexpr Duration kShortestFault{1};

__extension__ using LongTime = __int128;  // rounds of a long trace
constexpr double kFarthest = 4e18;        // nanoseconds before the start

// Maps times of the trace to times of the run. A round begins a nanosecond after the end of the previous one:
// additions come first at equal times, and would find the place still taken.
class Clock {
 public:
  Clock(const TraceReplay& replay, Duration length, Duration horizon)
      : replay_(replay), length_(length), horizon_(horizon) {
    SC_CHECK(replay.scale > 0, "time goes on");
    SC_CHECK(!replay.repeat || length > Duration(0), "a trace that is repeated lasts some time");
  }

  [[nodiscard]] Duration at(Duration time, int round) const {
    const LongTime place = LongTime((time - replay_.offset).count()) + LongTime(length_.count()) * round;
    const double scaled = replay_.scale * static_cast<double>(place);
    if (scaled >= static_cast<double>(horizon_.count())) return horizon_;  // what comes later is not played
    return Duration(std::llround(std::max(scaled, -kFarthest)) + round);
  }
  // Does this round begin before the horizon?
  [[nodiscard]] bool plays(int round) const {
    return round == 0 || (replay_.repeat && at(Duration(0), round) < horizon_);
  }

 private:
  const TraceReplay& replay_;
  Duration length_, horizon_;
};

bool opens(TraceEvent event) {
  return event == TraceEvent::kAdd || event == TraceEvent::kFaultStart;
}

// State at time 0 from the rows before it: the last row of each node or fault, if it says "present" or
// "open".
std::vector<PlayedRow> state_at_start(const std::vector<PlayedRow>& before) {
  std::vector<PlayedRow> state;
  for (const PlayedRow& row : before) {
    const auto same = [&](const PlayedRow& other) {
      return row.fault >= 0 ? other.fault == row.fault : other.node == row.node;
    };
    if (opens(row.event)) {
      if (std::ranges::none_of(state, same)) state.push_back(row);
    } else {
      std::erase_if(state, same);
    }
  }
  return state;
}

}  // namespace

std::vector<PlayedRow> play(const TraceReplay& replay, Duration horizon) {
  const std::vector<TraceRow>& rows = replay.trace.rows;
  if (rows.empty()) return {};
  const Clock clock(replay, rows.back().time, horizon);
  std::vector<PlayedRow> before, played;
  std::map<std::int32_t, Duration> started;
  for (int round = 0; clock.plays(round); ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      PlayedRow row{.time = clock.at(rows[i].time, round),
                    .event = rows[i].event,
                    .node = rows[i].node,
                    .cause = rows[i].cause,
                    .fault = rows[i].fault,
                    .id = static_cast<std::int32_t>(i + rows.size() * as_index(round))};
      if (row.event == TraceEvent::kFaultStart) started[row.fault] = row.time;
      if (row.event == TraceEvent::kFaultEnd)
        row.time = std::max(row.time, started[row.fault] + kShortestFault);
      // A fault that ends at time 0 is over at the start: its node does not break down only to be back at
      // once.
      const Duration heard(row.event == TraceEvent::kFaultEnd ? 1 : 0);
      if (row.time < horizon) (row.time < heard ? before : played).push_back(row);
    }
  }
  const std::vector<PlayedRow> state = state_at_start(before);
  played.insert(played.begin(), state.begin(), state.end());
  const bool faults = replay.trace.form == TraceForm::kFaults;
  std::ranges::stable_sort(played, {}, [faults](const PlayedRow& row) {
    return std::tuple(std::max(row.time, Duration(0)), faults && row.event == TraceEvent::kFaultEnd, row.id);
  });
  return played;
}

std::vector<PlayedCount> play_counts(const TraceReplay& replay, Duration horizon) {
  const std::vector<TraceCount>& rows = replay.trace.counts;
  if (rows.empty()) return {};
  const Clock clock(replay, rows.back().time, horizon);
  std::vector<PlayedCount> played;
  for (int round = 0; clock.plays(round); ++round) {
    for (const TraceCount& row : rows) {
      const Duration time = std::max(Duration(0), clock.at(row.time, round));
      if (time >= horizon) break;
      const int nodes = scaled_count(replay, row.available);
      if (!played.empty() && played.back().time == time)
        played.back().nodes = nodes;
      else
        played.push_back({.time = time, .nodes = nodes});
    }
  }
  return played;
}

std::vector<Duration> there_at_start(const TraceReplay& replay, Duration horizon, int most) {
  const std::vector<TraceCount>& rows = replay.trace.counts;
  if (rows.empty()) return {};
  const Clock clock(replay, rows.back().time, horizon);
  std::vector<Duration> came;
  for (int round = 0; clock.plays(round); ++round)
    for (const TraceCount& row : rows) {
      const Duration time = clock.at(row.time, round);
      if (time > Duration(0)) return came;
      came.resize(as_index(std::clamp(scaled_count(replay, row.available), 0, most)), time);
    }
  return came;
}

Membership::Membership(int process, std::vector<PlayedRow> rows, std::size_t names, Duration creation,
                       Fleet& fleet)
    : process_(process),
      rows_(std::move(rows)),
      creation_(creation),
      fleet_(fleet),
      own_places_(names <= as_index(fleet.nodes())),
      place_of_(names, -1),
      left_at_(as_index(fleet.nodes())) {
  for (int i = 0; i < fleet.nodes(); ++i) free_.push(i);
}

void Membership::next() {
  if (at_ == rows_.size()) return;
  const PlayedRow& row = rows_[at_++];
  fleet_.schedule({.time = std::max(row.time, now_),
                   .kind = row.event == TraceEvent::kAdd ? IncidentKind::kAdd : IncidentKind::kRemove,
                   .id = row.id,
                   .process = process_});
}

std::optional<int> Membership::free_place(std::int32_t name) const {
  if (own_places_) return name;
  if (free_.empty()) return std::nullopt;
  return free_.top();
}

bool Membership::add(const PlayedRow& row) {
  std::int32_t& place = place_of_[as_index(row.node)];
  if (place >= 0) return true;  // there already: a repeated trace begins with nodes left over from its end
  const std::optional<int> free = free_place(row.node);
  if (!free) return true;
  if (left_at_[as_index(*free)] == now_) return false;
  if (!own_places_) free_.pop();
  place = *free;
  fleet_.join(place, now_, row.id, std::max(now_, row.time + creation_));
  return true;
}

void Membership::remove(const PlayedRow& row) {
  std::int32_t& place = place_of_[as_index(row.node)];
  if (place < 0) return;
  fleet_.leave({.time = now_, .process = process_, .node = place, .id = row.id});
  left_at_[as_index(place)] = now_;
  if (!own_places_) free_.push(place);
  place = -1;
}

void Membership::fire(const Event& event) {
  const PlayedRow& row = rows_[at_ - 1];
  now_ = event.time;
  if (row.event == TraceEvent::kRemove) {
    remove(row);
  } else if (!add(row)) {  // again, a nanosecond later
    --at_;
    ++now_;
  }
  next();
}

void Counts::next() {
  if (at_ == rows_.size()) return;
  const bool more = at_ == 0 || rows_[at_].nodes >= rows_[at_ - 1].nodes;
  fleet_.schedule({.time = rows_[at_].time,
                   .kind = more ? IncidentKind::kAdd : IncidentKind::kRemove,
                   .id = static_cast<std::int32_t>(at_),
                   .process = process_});
  ++at_;
}

void Counts::fire(const Event& event) {
  const auto wanted = as_index(std::clamp(rows_[at_ - 1].nodes, 0, fleet_.nodes()));
  for (int node = 0; there_.size() < wanted; ++node) {
    if (!fleet_.absent(node)) continue;
    const bool before = at_ == 1 && there_.size() < came_.size();
    const Duration came = before ? came_[there_.size()] : event.time;
    fleet_.join(node, event.time, event.id, std::max(event.time, came + creation_));
    there_.push_back(node);
  }
  Stream choice = fleet_.stream(process_, static_cast<std::uint32_t>(event.id), Purpose::kTraceChoice);
  while (there_.size() > wanted) {
    const int i = choice.below(static_cast<int>(there_.size()));
    fleet_.leave({.time = event.time, .process = process_, .node = there_[as_index(i)], .id = event.id});
    there_.erase(there_.begin() + i);
  }
  next();
}

Faults::Faults(int process, const FailureSpec& spec, Fleet& fleet)
    : process_(process),
      replay_(std::get<TraceReplay>(spec.processes[as_index(process)].law)),
      fleet_(fleet),
      rows_(play(replay_, fleet.horizon())) {
  const std::vector<Cause>& causes = spec.processes[as_index(process)].causes;
  for (const std::string& name : replay_.trace.causes) {
    std::optional<int> cause = 0;
    for (std::size_t i = 0; i < causes.size(); ++i)
      if (causes[i].name == name) cause = static_cast<int>(i);
    if (std::ranges::find(replay_.leave_out, name) != replay_.leave_out.end()) cause.reset();
    cause_of_.push_back(cause);
  }
  std::int32_t faults = 0;
  for (const PlayedRow& row : rows_) faults = std::max(faults, row.fault + 1);
  open_.resize(as_index(faults));
}

void Faults::start() {
  const int servers = std::max(replay_.servers.value_or(0), static_cast<int>(replay_.trace.nodes.size()));
  nodes_of_.assign(as_index(servers), {});
  std::vector<int> left;
  for (int node = 0; node < fleet_.nodes(); ++node) {
    if (!replay_.servers) {
      if (node < servers) nodes_of_[as_index(node)] = {node};
      continue;
    }
    if (left.empty()) {
      left.resize(as_index(servers));
      std::iota(left.begin(), left.end(), 0);
    }
    Stream choice = fleet_.stream(process_, 0, Purpose::kTraceChoice, static_cast<std::uint32_t>(node));
    const auto server = left.begin() + choice.below(static_cast<int>(left.size()));
    nodes_of_[as_index(*server)].push_back(node);
    *server = left.back();
    left.pop_back();
  }
  next();
}

void Faults::next() {
  if (at_ == rows_.size()) return;
  const PlayedRow& row = rows_[at_++];
  fleet_.schedule({.time = std::max(row.time, Duration(0)),
                   .kind = row.event == TraceEvent::kFaultStart ? IncidentKind::kRemove : IncidentKind::kAdd,
                   .id = row.id,
                   .process = process_});
}

void Faults::open(const PlayedRow& row, const Event& event) {
  std::vector<Open>& faults = open_[as_index(row.fault)];
  const std::optional<int> cause = row.cause < 0 ? 0 : cause_of_[as_index(row.cause)];
  if (!cause || !faults.empty()) return;  // left out, or open for ever since an earlier round
  for (const int node : nodes_of_[as_index(row.node)])
    faults.push_back(
        {.node = node,
         .life = fleet_.break_down(
             {.time = event.time, .process = process_, .node = node, .cause = *cause, .id = row.id})});
}

void Faults::fire(const Event& event) {
  const PlayedRow& row = rows_[at_ - 1];
  if (row.event == TraceEvent::kFaultStart) {
    open(row, event);
  } else {
    for (const Open& fault : std::exchange(open_[as_index(row.fault)], {})) {
      Event mended = event;
      mended.node = fault.node;
      fleet_.mend(mended, fault.life);
    }
  }
  next();
}

}  // namespace stagecraft
