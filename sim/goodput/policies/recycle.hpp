// ReCycle: the micro-batches of a dead worker go to the live workers of the same stage in other
// pipelines.
//
//   places  ρ pipelines of S stages, one node each: a worker. No spares, no new partition; nodes beyond
//           ρ·S wait.
//   loss    of a node or of its processes: the step in flight, detection, a re-planning; then the step
//           of those that are left (recycle_iteration). No state moves.
//   rejoin  at a step end a waiting node takes a dead worker's place, in the stage that has lost most,
//           and gets its state from a peer. A process fault leaves such a node behind.
//   fatal   a stage without a live worker: back to the last checkpoint, with all nodes that are up put
//           into places anew, each stage as many as any other, or one more; fewer than S nodes:
//           stopped.
//
//   source  docs/resilience.md, section 6; ReCycle, SOSP 2024.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/goodput/policies/degraded_steps.hpp"
#include "sim/goodput/policy.hpp"

namespace stagecraft {

struct RecycleSpec {
  RecycleShape shape;  // shape of the full job
  RecycleForm form = RecycleForm::kLowerBound;
  std::int64_t samples = 1;  // samples per step: the batch is kept
  Duration reconfigure{};    // time after a loss, and when a node takes a place
  Duration restart{};        // restart from a checkpoint, without loading
  Duration peer_transfer{};  // a stage's state from another pipeline
  ShapeOf by_workers = {};   // steps by live workers, in place of the closed form
};

class Recycle : public Policy {
 public:
  explicit Recycle(RecycleSpec spec);

  Response on(const Incident& incident, const Machines& machines) override;
  Plan plan(const Situation& situation) override;

 private:
  [[nodiscard]] int stages() const { return static_cast<int>(spec_.shape.stage_times.size()); }
  [[nodiscard]] int places() const { return spec_.shape.pipelines * stages(); }
  [[nodiscard]] Response halt(Duration now);
  [[nodiscard]] std::vector<int> dead() const;  // dead workers by stage
  [[nodiscard]] Duration step_time(int workers) const;
  [[nodiscard]] bool state_survives() const;
  [[nodiscard]] bool vacant() const;
  [[nodiscard]] Plan restart(const Situation& situation);
  [[nodiscard]] Plan resume(Plan plan, const Situation& situation);
  void vacate(int node);
  void place(int node, int place);
  // returns how many nodes took a place.
  int fill_vacancies(const Situation& situation);
  // Fills all places anew, from the nodes that are usable at `due`.
  void place_all(const Situation& situation, Duration due);
  void know_nodes(const Machines& machines);
  void settle();  // training went on: every worker has its state
  [[nodiscard]] bool in_stall(Duration now) const { return now <= training_since_; }

  RecycleSpec spec_;
  std::vector<int> holder_;      // by place p·S + s: a node, -1: dead
  std::vector<int> place_;       // by node; -1: none
  std::vector<char> has_state_;  // by node: has it had its stage's state since training began?
  bool running_ = false;
  bool started_ = false;
  Duration training_since_{};  // the end of the last stall
};

}  // namespace stagecraft
