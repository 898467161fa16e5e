// The nodes of one repeat: their state, the agenda of events, and the history so far.
//
// A node is up when it is present (a trace or a spot market may remove it), unbroken and not in maintenance.
// Reasons to be down are counted: a node whose repair ends while a fault of a trace is open stays down.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/incident.hpp"
#include "sim/goodput/processes/process.hpp"
#include "sim/goodput/random.hpp"

namespace stagecraft {

struct RepeatKey {
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
};

struct FleetSize {
  int nodes = 0;   // the job's and its spares
  int spares = 0;  // those among them beyond the size of the job
};

// A failure: its process, cause and node. `cause` counts within the process.
struct Failure {
  Duration time{};
  int process = 0;
  int node = 0;
  int cause = 0;
  std::int32_t id = 0;
  std::uint32_t number = 0;  // number of this process's failures at `entity`, which indexes its draws
  std::uint32_t entity = 0;  // whose stream the repair time is drawn from
};

class Fleet {
 public:
  Fleet(const FailureSpec& spec, const FleetSize& size, const RepeatKey& key);

  [[nodiscard]] int nodes() const { return static_cast<int>(states_.size()); }
  // Size of the job, without spares.
  [[nodiscard]] int job_nodes() const { return nodes() - spares_; }
  [[nodiscard]] Duration horizon() const { return spec_.horizon; }
  [[nodiscard]] bool up(int node) const { return state(node).up(); }
  [[nodiscard]] int up_count() const { return up_count_; }
  [[nodiscard]] int incidents_of(int node) const { return state(node).incidents; }
  [[nodiscard]] StreamKey key(int process) const;
  // One of the up nodes, uniformly. throws InternalError when there is none.
  [[nodiscard]] int choose_up(Stream& stream) const;

  [[nodiscard]] Stream stream(int process, std::uint32_t entity, Purpose purpose,
                              std::uint32_t first_draw = 0) const;
  // Draws a cause of `process` by the shares: draw `number` of the stream (process, entity).
  [[nodiscard]] int choose_cause(int process, std::uint32_t entity, std::uint32_t number) const;
  [[nodiscard]] IncidentKind kind_of(int process, int cause) const;  // kRemove or kFault

  void schedule(const Event& event);  // events at or after the horizon are dropped

  // A fault, or a removal with its repair. The node is up.
  void fail(const Failure& failure);
  // Adds or removes a reason to be down, from a fault trace or maintenance; no repair follows. mend() ignores
  // a node that has left since: `life` is the return value of break_down().
  std::uint32_t break_down(const Failure& failure);
  void mend(const Event& event, std::uint32_t life);
  // The node joins, usable from `due`, or leaves for good together with its faults.
  void join(int node, Duration now, std::int32_t id, Duration due);
  void leave(const Failure& failure);
  [[nodiscard]] bool absent(int node) const { return state(node).absent; }

  // Sets the slowdown of this part of the node by `process`; 1: full speed.
  void slow(int process, const Event& event, SlowPart part, double factor);
  void corrupt(const Failure& failure, Duration onset);
  void announce(const Failure& failure, Duration due);

  // Runs the processes to the horizon. Incidents by (time, kind, id).
  [[nodiscard]] History run();

 private:
  struct Slowness {
    int process;
    SlowPart part;
    double factor;
  };
  struct NodeState {
    bool absent = false;
    int broken = 0;          // reasons
    std::uint32_t life = 0;  // number of departures
    int incidents = 0;
    std::vector<Slowness> slow;
    [[nodiscard]] bool up() const { return !absent && broken == 0; }
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return a.order() > b.order(); }
  };

  [[nodiscard]] NodeState& state(int node) { return states_[as_index(node)]; }
  [[nodiscard]] const NodeState& state(int node) const { return states_[as_index(node)]; }
  [[nodiscard]] const Cause& cause(int process, int cause) const;
  [[nodiscard]] Incident incident_of(const Failure& failure, IncidentKind kind) const;
  [[nodiscard]] std::optional<Duration> repair_time(const Failure& failure) const;
  void name_causes();
  void went_down(const Failure& failure);
  void came_up(int node, Duration now, std::int32_t id, Duration due);
  void count_incident(int node, Duration now);

  const FailureSpec& spec_;
  RepeatKey key_;
  int spares_;
  std::vector<NodeState> states_;
  int up_count_ = 0;
  std::vector<std::vector<std::int32_t>> cause_numbers_;  // by process and cause: index in History::causes
  std::vector<std::unique_ptr<Process>> processes_;
  std::priority_queue<Event, std::vector<Event>, Later> agenda_;
  History history_;
};

// Event::process of a repair that ends.
inline constexpr std::int32_t kRepairShop = -1;

}  // namespace stagecraft
