// Recovery policy of a job: the interface between the job's clock and a policy.
//
// The job (job.hpp) knows time, steps, checkpoints and accounts; a policy knows shapes and nodes. The job
// asks two questions:
//
//   on     what does this incident mean for the job? Asked of every incident, in order, the moment it
//          happens, whatever the job is doing. While it detects a failure that halted it, the answer is not
//          heard: the plan after it is made from the machines as they are then. Nobody is asked about nodes
//          added or removed at time 0: they are there at the start, or not. Corruption of a node is a failure,
//          whatever the answer, where steps count that the node has trained since the onset: it may have left
//          since, or the job may be stopped.
//   plan   what now? Asked at the start, when a failure is detected, at a step end that the policy asked for,
//          and while the job is stopped when the policy says so. The answer holds until the next plan.
//
//   source  docs/resilience.md, section 1: detect → wait → reconfigure → state_transfer → first new step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/incident.hpp"
#include "sim/goodput/machines.hpp"

namespace stagecraft {

// One optimizer step of a shape.
struct StepPlan {
  Duration duration{};       // > 0, with no node slow
  std::int64_t samples = 0;  // >= 1, committed at its end
  // Training nodes, each up and listed once, in the order of their places in the plan.
  std::vector<int> nodes;
  // `duration` knows of slow nodes; else the slowest one's factor multiplies it.
  bool slowness_priced = false;

  friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

// Effect of an incident on the job.
enum class Answer : std::uint8_t {
  kNothing,    // the job goes on unchanged
  kHalt,       // a failure: the step in flight is lost, detection begins, then plan(kFailure)
  kAtStepEnd,  // plan(kStepEnd) at the end of the step in flight, which counts; while stalled or stopped: at
               // once (the stall begins again, nothing more is lost)
  kSlowDown,   // the rest of the step in flight and all steps until the next plan take `factor` times as long
  // Of kAnnounced: take a checkpoint that is usable just before `due`, if uses(node) then, and wait for the
  // removal. A checkpoint that does not fit is not taken in time.
  kCheckpoint,
  // A checkpoint at the end of the step in flight, or of the first one at `not_before`, then
  // plan(kCheckpointed). While stalled or stopped: plan(kStepEnd) at once.
  kCheckpointAndPlan,
};

struct Response {
  Answer answer = Answer::kNothing;
  // With kHalt: replaces the incident's detection time. With kAtStepEnd and kSlowDown, where the job goes on
  // without a lost node: the job stands still for this time first, also during checkpoints and stalls, and
  // loses no work.
  std::optional<Duration> detect = {};
  // With kSlowDown, kAtStepEnd and kCheckpointAndPlan: factor on steps until the next plan. It replaces the
  // factor before it.
  std::optional<double> factor = {};
  // With kCheckpointAndPlan: the job trains on until then.
  Duration not_before{};
};

enum class Occasion : std::uint8_t {
  kStart,         // nothing has been trained
  kFailure,       // detection is over; several nodes may have gone
  kStepEnd,       // requested by kAtStepEnd
  kReview,        // requested by Plan::review
  kCheckpointed,  // requested by kCheckpointAndPlan
};

// Inputs of a plan besides the policy's own memory.
struct Situation {
  Occasion occasion = Occasion::kStart;
  Duration now{};
  const Machines& machines;
  // Load time of going back to a checkpoint now (Undo::kToCheckpoint): from host memories where every shard
  // has a surviving copy, otherwise from storage; zero without a checkpoint.
  Duration load{};
  // Results were wrong: the job goes back to a checkpoint whatever the plan says. True until a plan has a step.
  bool corrupted = false;
};

enum class Undo : std::uint8_t {
  kNothing,       // committed steps stay
  kToCheckpoint,  // back to the last usable checkpoint; to the start where there is none
};

// The time before the first step of a plan, part by part, each in its bucket.
struct PlanStall {
  Duration wait{};  // idle
  Duration reconfigure{};
  Duration state_transfer{};
  [[nodiscard]] Duration total() const { return wait + reconfigure + state_transfer; }
  // What is left of it.
  [[nodiscard]] PlanStall after(Duration elapsed) const {
    PlanStall rest = *this;
    for (Duration PlanStall::*part :
         {&PlanStall::wait, &PlanStall::reconfigure, &PlanStall::state_transfer}) {
      const Duration gone = std::min(rest.*part, elapsed);
      rest.*part -= gone;
      elapsed -= gone;
    }
    return rest;
  }
};

struct Plan {
  Undo undo = Undo::kNothing;
  PlanStall stall = {};  // the policy is asked about incidents during it
  // Absent: stopped (idle) until kAtStepEnd; the stall above is then not made.
  std::optional<StepPlan> step = {};
  // plan(kReview) at the first step end at least this long after the stall.
  std::optional<Duration> review = {};
};

// One object per repeat; it may keep state. Equal calls give equal answers.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // `machines` already know the incident.
  [[nodiscard]] virtual Response on(const Incident& incident, const Machines& machines) = 0;
  [[nodiscard]] virtual Plan plan(const Situation& situation) = 0;
  // Does the job train on the node? Only those who answer kCheckpoint are asked, when the removal is near.
  [[nodiscard]] virtual bool uses(int /*node*/) const { return true; }
};

// Called once a repeat, from any thread.
using PolicyFactory = std::function<std::unique_ptr<Policy>()>;

// Step of a shape, and the nodes that it uses.
struct ShapedStep {
  Duration duration{};
  std::int64_t samples = 0;
  int nodes = 0;

  friend bool operator==(const ShapedStep&, const ShapedStep&) = default;
};
// Samples per second.
[[nodiscard]] inline double rate_of(const ShapedStep& step) {
  return static_cast<double>(step.samples) / to_seconds(step.duration);
}
// Step of the best shape on at most `nodes` nodes; absent where no shape trains. The maker memoises it; called
// from any thread.
using ShapeOf = std::function<std::optional<ShapedStep>(int nodes)>;

}  // namespace stagecraft
