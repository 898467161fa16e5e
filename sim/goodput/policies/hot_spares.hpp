// Hot spares: a pool of nodes that wait, ready, for the place of one that fails.
//
//   failure   the job begins again within `swap`: processes start anew, and places of lost nodes go to nodes
//             of the pool. Pool empty: the job stops (idle) until a repair, and then restarts cold, within
//             `restart`. A repaired node joins the pool.
//   pool      whoever is up and has no place: with s spares the history has nodes + s.
//   state     from the last checkpoint; or from peers: only the step in flight is lost while each state has
//             a holder that survives, else the checkpoint. With backups each node's shard is
//             copied every step to a place further on, whoever shards what.
//   slow      nodes are ignored, or met by the ladder (slow_ladder.hpp): micro-batches move between replicas,
//             a spare takes the place of a slow node, which joins the pool; and without a spare the job may
//             go on without it, in a smaller shape, until enough nodes are well.
//   source    docs/resilience.md, section 6; backups: ByteRobust (arXiv 2509.16293), section 3 there.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/policies/seats.hpp"
#include "sim/goodput/policies/slow_ladder.hpp"
#include "sim/goodput/policy.hpp"

namespace stagecraft {

struct HotSparesSpec {
  int nodes = 0;  // nodes of the job, without its spares
  Duration step{};
  std::int64_t samples = 0;  // samples per step
  // The time from the end of detection until state can be loaded.
  Duration swap{};
  std::vector<std::pair<int, Duration>> restart;  // restart time by number of GPUs
  int gpus_per_node = 1;
  StateSource state = StateSource::kCheckpoint;
  // kPeer: for each state of a job on `places` places, the places that hold it. They are each other's peers.
  std::function<std::vector<std::vector<int>>(int places)> holders = {};
  int backup_distance = 0;  // kPeer, > 0: no two places hold the same state; the place this far on has a copy
  Duration peer_transfer{};             // kPeer: a node's state from a replica
  std::optional<SlowLadder> slow = {};  // absent: ignored
  ShapeOf smaller = {};                 // best shape of fewer nodes, for SlowLadder::restart
};

class HotSpares : public Policy {
 public:
  explicit HotSpares(HotSparesSpec spec) : spec_(std::move(spec)), lost_(as_index(spec_.nodes)) {}

  Response on(const Incident& incident, const Machines& machines) override;
  Plan plan(const Situation& situation) override;
  [[nodiscard]] bool uses(int node) const override { return seats_.has(node); }

 private:
  // A shape of the nodes that are up. Its pace is the time for as many samples as a step of the whole job has,
  // over that step's time; of a smaller shape that cannot be had it is infinite.
  struct Choice {
    double pace = 1;
    std::optional<ShapedStep> smaller = {};  // absent: the whole job
  };

  [[nodiscard]] bool state_survives() const;
  [[nodiscard]] Response slowed(const Incident& incident, const Machines& machines);
  [[nodiscard]] bool grows(const Machines& machines, Duration now) const;
  // Is the node usable by then, and not noticeably slow? How many are?
  [[nodiscard]] bool is_well(int node, const Machines& machines, Duration by) const;
  [[nodiscard]] int count_well(const Machines& machines, Duration by) const;
  [[nodiscard]] std::vector<int> replaceable(std::vector<int> slow, const Machines& machines,
                                             Duration now) const;
  [[nodiscard]] Choice without_slow_nodes(int well) const;
  [[nodiscard]] Duration cold_start(int nodes) const;
  void seat(const Machines& machines, Duration now);

  HotSparesSpec spec_;
  Seats seats_;
  std::vector<char> lost_;     // by place: was its state lost since the job trained last?
  Duration training_since_{};  // end of the stall of the last plan
  bool hit_ = false;           // has a place been hit since then?
  bool started_ = false;
  bool stopped_ = false;     // too few nodes are up
  bool cold_ = false;        // has the job stopped since it trained last?
  double planned_pace_ = 1;  // pace of the last plan
  Choice choice_ = {};       // choice of the last plan
  Duration last_load_{};
  std::vector<int> leaving_;  // slow nodes whose places the pool takes at the next plan
};

}  // namespace stagecraft
