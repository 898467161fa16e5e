// Replays a recorded trace to the fleet.
//
// At equal times the order of the rows counts. Histories list additions first (docs/resilience.md, section
// 1), so a place that is retaken the moment it is left is taken a nanosecond later. A node is usable the
// creation time after its addition. An addition without a free place in the cluster is skipped, and so is its
// removal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/processes/fleet.hpp"
#include "sim/goodput/processes/process.hpp"
#include "sim/goodput/trace.hpp"

namespace stagecraft {

// A row of a trace at its time in the run; negative for rows before the offset.
struct PlayedRow {
  Duration time{};
  TraceEvent event = TraceEvent::kAdd;
  std::int32_t node = 0;
  std::int32_t cause = -1;
  std::int32_t fault = -1;
  std::int32_t id = 0;  // rows before it in the play, all rounds together
};

// The rows of an event or fault trace up to the horizon: scaled, from its offset, repeated. Before the offset
// only rows that still hold remain: present nodes, open faults. Ordered by (time, id); of faults at equal
// times the starts come first.
[[nodiscard]] std::vector<PlayedRow> play(const TraceReplay& replay, Duration horizon);

struct PlayedCount {
  Duration time{};
  int nodes = 0;
};
// Plays a trace of counts, in nodes: at most one entry a time, the first at 0.
[[nodiscard]] std::vector<PlayedCount> play_counts(const TraceReplay& replay, Duration horizon);

// The times, 0 or before, at which the nodes came that a trace of counts has at time 0, of which at most
// `most`. Where the count has fallen, the last to come have gone.
[[nodiscard]] std::vector<Duration> there_at_start(const TraceReplay& replay, Duration horizon, int most);

// Additions and removals. Names take the places 0, 1, … in order of appearance while there are enough places
// for all of them. Otherwise a new node takes the first free place.
class Membership : public Process {
 public:
  // names: how many nodes the rows know; creation: from an addition until the node is usable.
  Membership(int process, std::vector<PlayedRow> rows, std::size_t names, Duration creation, Fleet& fleet);

  void start() override { next(); }
  void fire(const Event& event) override;

 private:
  void next();
  // returns false where the place was left at this very instant: the addition follows a nanosecond later.
  [[nodiscard]] bool add(const PlayedRow& row);
  void remove(const PlayedRow& row);
  [[nodiscard]] std::optional<int> free_place(std::int32_t name) const;

  int process_;
  std::vector<PlayedRow> rows_;
  Duration creation_;
  Fleet& fleet_;
  std::size_t at_ = 0;
  Duration now_{};
  bool own_places_;
  std::vector<std::int32_t> place_of_;            // by name; −1: not there
  std::vector<std::optional<Duration>> left_at_;  // by place: when last
  std::priority_queue<int, std::vector<int>, std::greater<>> free_;
};

// Numbers of nodes: the first absent places are filled, removed nodes are drawn among those that are there.
class Counts : public Process {
 public:
  Counts(int process, const TraceReplay& replay, Fleet& fleet)
      : process_(process),
        rows_(play_counts(replay, fleet.horizon())),
        came_(there_at_start(replay, fleet.horizon(), fleet.nodes())),
        creation_(replay.creation),
        fleet_(fleet) {}

  void start() override { next(); }
  void fire(const Event& event) override;

 private:
  void next();

  int process_;
  std::vector<PlayedCount> rows_;
  std::vector<Duration> came_;  // of the nodes of the first row
  Duration creation_;
  Fleet& fleet_;
  std::size_t at_ = 0;
  std::vector<int> there_;
};

// Faults of servers: a node is down while any fault of its server is open. Without `servers` the names of the
// trace are the nodes 0, 1, … in order of appearance; with it each node is one of that many servers, drawn
// without replacement until all are taken, then again.
class Faults : public Process {
 public:
  Faults(int process, const FailureSpec& spec, Fleet& fleet);

  void start() override;
  void fire(const Event& event) override;

 private:
  struct Open {
    int node;
    std::uint32_t life;
  };
  void next();
  void open(const PlayedRow& row, const Event& event);

  int process_;
  const TraceReplay& replay_;
  Fleet& fleet_;
  std::vector<PlayedRow> rows_;
  std::vector<std::optional<int>> cause_of_;  // by class of the trace; nullopt: left out
  std::size_t at_ = 0;
  std::vector<std::vector<int>> nodes_of_;  // by server
  std::vector<std::vector<Open>> open_;     // by fault
};

}  // namespace stagecraft
