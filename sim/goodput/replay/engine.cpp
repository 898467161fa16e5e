#include "sim/goodput/replay/engine.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {

ReplayEngine::ReplayEngine(const std::vector<NodeChange>& changes, const ReplayRules& rules)
    : changes_(changes), rules_(rules), events_(rules.ties) {
  SC_CHECK(rules.rules == Rules::kPublished || rules.ties == Ties::kTraceOrder,
           "corrected rules know one order of equal times");
  int nodes = 0;
  for (const NodeChange& change : changes) nodes = std::max(nodes, change.node + 1);
  nodes_.assign(as_index(nodes), ReplayNode::kGone);
  added_by_.assign(as_index(nodes), -1);
  next_id_ = static_cast<std::int64_t>(changes.size());
  replay_.end = rules.end;
  replay_.states.push_back({});
}

Replay ReplayEngine::run() {
  for (std::size_t row = 0; row < changes_.size(); ++row)
    events_.push({.time = changes_[row].time,
                  .kind = changes_[row].joins ? ReplayEventKind::kAdd : ReplayEventKind::kRemove,
                  .id = static_cast<std::int64_t>(row),
                  .node = changes_[row].node});
  if (rules_.ties == Ties::kHeapRebuilt) events_.rebuild();
  while (!events_.empty()) {
    const ReplayEvent event = events_.pop();
    if (event.time >= rules_.end) break;
    handle(event);
  }
  return std::move(replay_);
}

void ReplayEngine::handle(const ReplayEvent& event) {
  switch (event.kind) {
    case ReplayEventKind::kAdd:
      return add(event);
    case ReplayEventKind::kRemove:
      return remove(event);
    case ReplayEventKind::kReady:
      return ready(event);
    case ReplayEventKind::kGlobalTimeout:
    case ReplayEventKind::kLocalTimeout:
      return timeout(event);
    case ReplayEventKind::kStepEnd:
      if (event.version == version_) step_ended(event.time);
      return;
    case ReplayEventKind::kCheckpointComplete:
      return checkpoint_completed(event);
  }
}

void ReplayEngine::add(const ReplayEvent& event) {
  SC_CHECK(nodes_[as_index(event.node)] == ReplayNode::kGone, "a node that is there is added");
  nodes_[as_index(event.node)] = ReplayNode::kCreating;
  added_by_[as_index(event.node)] = event.id;
  order_.push_back(event.node);
  count_nodes(event.time);
  events_.push({.time = changes_[static_cast<std::size_t>(event.id)].ready,
                .kind = ReplayEventKind::kReady,
                .id = event.id,
                .node = event.node});
}

void ReplayEngine::ready(const ReplayEvent& event) {
  if (nodes_[as_index(event.node)] != ReplayNode::kCreating || added_by_[as_index(event.node)] != event.id)
    return;
  nodes_[as_index(event.node)] = ReplayNode::kReady;
  if (state_ == ReplayState::kStopped) {
    begin(event.time, true);
  } else if (state_ == ReplayState::kRendezvous) {
    list_.push_back(event.node);
  } else {
    ready_while_running();
  }
}

void ReplayEngine::remove(const ReplayEvent& event) {
  const ReplayNode was = nodes_[as_index(event.node)];
  SC_CHECK(was != ReplayNode::kGone, "a node that is not there is removed");
  nodes_[as_index(event.node)] = ReplayNode::kGone;
  order_.erase(std::find(order_.begin(), order_.end(), event.node));
  count_nodes(event.time);
  ++replay_.removals;
  const std::optional<std::int32_t> before = blame_;
  blame_ = changes_[static_cast<std::size_t>(event.id)].cause;
  removed(event.time, event.node, was);
  if (state_ != ReplayState::kRunning)
    blame_.reset();
  else if (before || was != ReplayNode::kRunning)
    blame_ = before;
}

void ReplayEngine::begin(Duration now, bool global) {
  if (state_ == ReplayState::kRunning && blame_) replay_.stops.push_back({.time = now, .cause = *blame_});
  blame_.reset();
  enter(ReplayState::kRendezvous, now);
  global_ = global;
  list_all();
  if (!published()) ++version_;
  set_timer(now, global);
}

void ReplayEngine::timeout(const ReplayEvent& event) {
  if (!published() && event.version != timer_) return;
  const bool global = event.kind == ReplayEventKind::kGlobalTimeout;
  const bool incomplete = std::any_of(
      list_.begin(), list_.end(), [this](int node) { return nodes_[as_index(node)] == ReplayNode::kGone; });
  if (incomplete) {
    list_all();
    return set_timer(event.time, global);
  }
  for (ReplayNode& node : nodes_)
    if (node == ReplayNode::kRunning) node = ReplayNode::kReady;
  const std::vector<int> list = std::move(list_);
  list_.clear();
  ++version_;
  ++replay_.rendezvous;
  const Duration step = assign(list);
  if (step == Duration{}) return enter(ReplayState::kStopped, event.time);
  enter(ReplayState::kRunning, event.time);
  if (!replay_.start) replay_.start = event.time;
  next_step(event.time, step);
}

void ReplayEngine::next_step(Duration start, Duration length) {
  step_start_ = start;
  prolong_step(start + length);
}

void ReplayEngine::prolong_step(Duration end) {
  push({.time = end, .kind = ReplayEventKind::kStepEnd, .version = version_});
}

void ReplayEngine::push(ReplayEvent event) {
  event.id = next_id_++;
  events_.push(event);
}

int ReplayEngine::usable_nodes() const {
  return static_cast<int>(std::count_if(order_.begin(), order_.end(), [this](int node) {
    return nodes_[as_index(node)] != ReplayNode::kCreating;
  }));
}

int ReplayEngine::ready_nodes() const {
  return static_cast<int>(std::count_if(order_.begin(), order_.end(), [this](int node) {
    return nodes_[as_index(node)] == ReplayNode::kReady;
  }));
}

void ReplayEngine::list_all() {
  list_.clear();
  for (const int node : order_)
    if (nodes_[as_index(node)] != ReplayNode::kCreating) list_.push_back(node);
}

void ReplayEngine::set_timer(Duration now, bool global) {
  push({.time = now + rendezvous_time(global),
        .kind = global ? ReplayEventKind::kGlobalTimeout : ReplayEventKind::kLocalTimeout,
        .version = ++timer_});
}

void ReplayEngine::enter(ReplayState state, Duration now) {
  if (state != state_) replay_.states.push_back({.time = now, .state = state});
  state_ = state;
}

void ReplayEngine::count_nodes(Duration now) {
  const int nodes = static_cast<int>(order_.size());
  if (!replay_.counts.empty() && replay_.counts.back().time == now) {
    replay_.counts.back().nodes = nodes;
  } else {
    replay_.counts.push_back({.time = now, .nodes = nodes});
  }
}

}  // namespace stagecraft
