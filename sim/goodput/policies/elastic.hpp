// Elastic data parallelism: a replica that loses a node leaves, the others go on, and it joins again when it
// has its state.
//
//   failure   all stall for `stall` (the collective's timeout, a new group, the step again), of which
//             detection is a part, and which each failure begins again; the step in flight is lost, nothing
//             else
//   degraded  the other replicas train; the lost one reloads from a peer, `reload` from the end of the stall
//             or, if later, from when its nodes are up
//   rejoin    at the step end after it: all stall for `rejoin`
//   fewer     than min_replicas: the job waits. None left: back to the last checkpoint, by a restart.
//   places    of lost nodes go to nodes that are up and have none (spares), in the order of their adds
//   source    docs/resilience.md, section 6 (torchft; FT-HSDP, arXiv 2602.00277).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "sim/goodput/policy.hpp"

namespace stagecraft {

struct ElasticSpec {
  int replicas = 1;
  // Replica r has the places r·replica_nodes …; the job has replicas·replica_nodes nodes.
  int replica_nodes = 1;
  int min_replicas = 1;
  Duration stall{};
  Duration reload{};
  Duration rejoin{};
  std::vector<std::pair<int, Duration>> restart;  // restart time by number of GPUs, when no replica is left
  int gpus_per_node = 1;
  ShapeOf shape;  // shape of k·replica_nodes nodes: k replicas, with the batch shrunk or kept
};

class ElasticDataParallel : public Policy {
 public:
  explicit ElasticDataParallel(ElasticSpec spec);

  Response on(const Incident& incident, const Machines& machines) override;
  Plan plan(const Situation& situation) override;

 private:
  enum class State : std::uint8_t {
    kTrains,   // or would, while the job waits: it holds the state
    kReloads,  // its nodes are up; it holds the state from `reloaded` on
    kShort,    // a place has no node
  };
  struct Replica {
    State state = State::kShort;
    Duration reloaded{};
    Duration begun{};  // of the reload: its nodes were up
  };

  [[nodiscard]] int count(State state) const;
  [[nodiscard]] Replica& replica_at(std::size_t place) {
    return replicas_[place / as_index(spec_.replica_nodes)];
  }
  [[nodiscard]] Replica* replica_of(int node);  // null: none
  Response lose(const Incident& incident);
  [[nodiscard]] Duration ready() const { return planned_ + stall_.total(); }  // the stall ends, or has
  // Seats nodes in empty places. A replica that becomes whole reloads from `from` on.
  void seat_nodes(const Machines& machines, Duration from);
  [[nodiscard]] Duration reloaded_by(int replicas) const;
  void admit(Duration by);  // admits replicas that have reloaded by then
  [[nodiscard]] Plan from_checkpoint(const Situation& situation);
  [[nodiscard]] Plan rest_of_stall(Duration now);
  [[nodiscard]] Plan train(Plan plan, Duration now);

  ElasticSpec spec_;
  std::vector<int> nodes_;   // by place, -1: empty
  std::vector<int> places_;  // by node, -1: none
  std::vector<Replica> replicas_;
  // Failures detected together: the first, the end of its detection, and the last, from which on all stall.
  Duration detected_from_{}, detected_{}, stalled_from_{};
  PlanStall stall_;     // of the last plan
  Duration planned_{};  // when it was made
  bool started_ = false, stopped_ = false;
};

}  // namespace stagecraft
