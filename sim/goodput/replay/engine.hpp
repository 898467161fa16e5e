// Base of all replays: arriving and leaving nodes, the rendezvous, its timers, and consecutive steps.
//
//   add      the node is under creation until it is ready; then a stopped job begins a global
//            rendezvous, one in a rendezvous takes the node into its list, a running one leaves it
//            waiting.
//   begin    the list of the rendezvous is all ready or running nodes in the order of their adds; a
//            timer is set.
//   timeout  if a node of the list is gone: a new list and a new timer. Else the list's nodes get their
//            places.
//
// Corrected rules: a beginning rendezvous invalidates older timers and the step in flight. Published
// rules: older timers stay (with an empty list they stop a running job), and steps of the old shape
// end, and follow each other, until the timeout.
//
//   source  docs/resilience.md, sections 7 (common rules) and 7.2 (defects 1, 2 and 5).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "sim/goodput/replay/replay.hpp"

namespace stagecraft {

enum class ReplayNode : std::uint8_t { kGone, kCreating, kReady, kRunning };

class ReplayEngine {
 public:
  ReplayEngine(const std::vector<NodeChange>& changes, const ReplayRules& rules);
  ReplayEngine(const ReplayEngine&) = delete;
  ReplayEngine& operator=(const ReplayEngine&) = delete;
  virtual ~ReplayEngine() = default;

  [[nodiscard]] Replay run();

 protected:
  // Gives the list's nodes their places with set_running(); all nodes are ready at most before. Returns the
  // step of the new shape; zero: too few nodes, the job stops.
  [[nodiscard]] virtual Duration assign(const std::vector<int>& list) = 0;
  [[nodiscard]] virtual Duration rendezvous_time(bool global) const = 0;
  // The node is gone already; it was `was`.
  virtual void removed(Duration now, int node, ReplayNode was) = 0;
  virtual void ready_while_running() {}
  // The step in flight is over: record it, and go on.
  virtual void step_ended(Duration now) = 0;
  virtual void checkpoint_completed(const ReplayEvent& /*event*/) {}

  void begin(Duration now, bool global);
  void next_step(Duration start, Duration length);
  void prolong_step(Duration end);  // the step goes on until `end`
  void record_step(Duration now) { replay_.steps.push_back({.start = step_start_, .end = now}); }
  void set_running(int node) { nodes_[as_index(node)] = ReplayNode::kRunning; }
  void push(ReplayEvent event);

  [[nodiscard]] bool published() const { return rules_.rules == Rules::kPublished; }
  [[nodiscard]] ReplayState state() const { return state_; }
  [[nodiscard]] bool global_rendezvous() const { return global_; }
  [[nodiscard]] std::int64_t version() const { return version_; }
  [[nodiscard]] int usable_nodes() const;  // ready or running
  [[nodiscard]] int ready_nodes() const;
  [[nodiscard]] EventQueue& events() { return events_; }
  [[nodiscard]] Replay& replay() { return replay_; }

 private:
  void handle(const ReplayEvent& event);
  void add(const ReplayEvent& event);
  void ready(const ReplayEvent& event);
  void remove(const ReplayEvent& event);
  void timeout(const ReplayEvent& event);
  void list_all();
  void set_timer(Duration now, bool global);
  void enter(ReplayState state, Duration now);
  void count_nodes(Duration now);

  const std::vector<NodeChange>& changes_;
  ReplayRules rules_;
  EventQueue events_;
  Replay replay_;
  std::vector<ReplayNode> nodes_;       // [node]
  std::vector<std::int64_t> added_by_;  // [node] row of its latest add
  std::vector<int> order_;              // nodes that exist, in the order of their adds
  std::vector<int> list_;               // nodes of the rendezvous
  ReplayState state_ = ReplayState::kStopped;
  bool global_ = true;
  std::int64_t version_ = 0;  // version of the shape: steps of an older one are void
  std::int64_t timer_ = 0;    // number of the live timer
  std::int64_t next_id_ = 0;  // id of the next event that no row of the trace created
  Duration step_start_{};
  std::optional<std::int32_t> blame_;  // cause of the first loss that did not stop training
};

}  // namespace stagecraft
