// Oobleck's plan for a job, as a value: its templates, its initial pipelines, and the effect of each failure.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "sim/goodput/oobleck/planner.hpp"

namespace stagecraft {

struct PlannedTemplate {
  // Group of its nodes in heterogeneous clusters; empty where all nodes are identical.
  std::string group = {};
  PipelineTemplate made = {};
  int micro_batches = 0;  // a pipeline's share when all nodes are at work
  Duration time{};        // of those
};

struct PlannedPipeline {
  std::vector<int> nodes = {};
  PipelineTemplate made = {};
  int micro_batches = 0;
  Duration time{};
};

// The first failure: one node fails.
struct PlannedFailure {
  int node = 0;
  int pipeline = -1;  // its number in the plan; -1: the node was a standby
  std::vector<PipelineEvent> events = {};
  std::vector<int> sizes = {};  // sizes of the pipelines after the failure, ascending
  bool runs = true;
  bool guarantee_kept = true;
  bool from_checkpoint = false;  // a layer has no surviving owner
  Duration reconfigure{};
  Duration copy{};
  Bytes moved{};
  int receivers = 0;  // nodes that get something
  Duration step{};    // after it; 0 where it does not run
};

// The best pipelines of fewer nodes: the result of recomposing.
struct PlannedCount {
  int nodes = 0;
  std::vector<int> sizes = {};
  int idle = 0;
  Duration step{};
};

struct OobleckPlan {
  int nodes = 0;
  int gpus_per_node = 1;
  int layers = 0;
  int micro_batches = 0;
  PipelineRule rule = PipelineRule::kCorrected;
  bool simulated = false;  // times come from a callback, not from the equations
  TemplateRange range = {};
  std::vector<Diagnostic> warnings = {};
  std::vector<PlannedTemplate> templates = {};
  std::vector<PlannedPipeline> pipelines = {};
  std::vector<int> idle = {};
  Duration step{};
  Duration least_step{};                      // X*: of any pipelines of any of the nodes
  std::vector<PlannedFailure> failures = {};  // every node, by number
  std::vector<PlannedCount> counts = {};      // descending; at most kPlannedCounts, evenly spread
};
inline constexpr int kPlannedCounts = 16;

// The time of a reconfiguration without the state copy; with `copy_included`, all of it.
struct ReconfigureCost {
  Duration time{};
  bool copy_included = false;
};

[[nodiscard]] OobleckPlan plan_oobleck(OobleckPlanner& planner, ReconfigureCost reconfigure);

// Failures with the same effect share one row; ends with a newline.
[[nodiscard]] std::string render_plan(const OobleckPlan& plan);

}  // namespace stagecraft
