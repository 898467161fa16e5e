// Varuna: whenever nodes leave or arrive, the job moves to the best shape of the available nodes (morphing).
//
//   shape        of so many nodes, its depth and micro-batch chosen by whoever gives `shape`; nodes
//                beyond it idle.
//   unannounced  loss of a node or a fault of its processes: the job waits `transient_wait` whether the
//                error passes (in detect), is killed, and starts again from the last checkpoint all
//                parts of which have reached the store.
//   announced    removal: a checkpoint at the end of the step in flight, `announced_wait`, and a
//                restart without the node; nothing is lost if the checkpoint is there before the node
//                is gone. With `notice` every removal is taken to be announced that long before: where
//                a checkpoint on demand is no longer than that, the job loses the step in flight and
//                pays the checkpoint before its restart.
//   newcomer     taken in when the shape with it is faster, by a checkpoint and a restart.
//   checkpoints  are the job's (JobSpec::checkpointing): sharded over replicas, written to local disks
//                (block), moved to the store in the background (persist), usable when all parts are
//                there.
//
//   source  docs/resilience.md, section 6; Varuna, EuroSys 2022.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/goodput/policy.hpp"

namespace stagecraft {

struct VarunaSpec {
  int nodes = 1;  // nodes of the full job; it never uses more
  ShapeOf shape;
  std::vector<std::pair<int, Duration>> restart;  // restart time by number of GPUs
  int gpus_per_node = 1;
  Duration transient_wait{};
  Duration announced_wait{};
  Duration notice{};           // zero: removals are unannounced, unless the history announces them
  Duration checkpoint_cost{};  // cost of a checkpoint on demand
};

class Varuna : public Policy {
 public:
  explicit Varuna(VarunaSpec spec);

  Response on(const Incident& incident, const Machines& machines) override;
  Plan plan(const Situation& situation) override;

 private:
  [[nodiscard]] Response failed(const Incident& incident);
  // The nodes that are up and will stay, in the order of their adds.
  [[nodiscard]] std::vector<int> staying(const Machines& machines) const;
  [[nodiscard]] std::optional<ShapedStep> best(const std::vector<int>& nodes) const;
  [[nodiscard]] Duration restart(const ShapedStep& shape) const;
  [[nodiscard]] bool trains(int node) const;

  VarunaSpec spec_;
  std::optional<ShapedStep> shape_;  // absent: stopped
  std::vector<int> nodes_;           // nodes of the shape
  std::vector<char> leaving_;        // by node: is its removal announced?
  bool started_ = false;
  // Events since the last plan.
  bool announced_ = false;  // the removal of a training node was announced
  bool saved_ = false;      // a removal with a checkpoint before it
  bool unsaved_ = false;    // a failure without one
};

}  // namespace stagecraft
