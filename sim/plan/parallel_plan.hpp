// Who does what: a validated placement of a model on a cluster. Only valid plans exist.
//
//   GPUs = tensor * pipeline * data; micro-batches m = global batch / (data * micro-batch).
//   Global stage s holds its layers in model order and lives on pipeline rank s mod p (loop placement).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"
#include "models/model_spec.hpp"
#include "sim/plan/specs.hpp"
#include "topology/cluster_spec.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

// What one global stage (a model chunk) holds.
struct StageContent {
  std::int64_t layers = 0;
  bool embedding = false;
  bool head = false;

  friend bool operator==(const StageContent&, const StageContent&) = default;
};

struct ParallelPlan {
  int tensor = 1, pipeline = 1, data = 1, virtual_stages = 1;
  int micro_batches = 1;
  std::vector<StageContent> stages;  // pipeline * virtual_stages, in model order
  RankMesh mesh;

  [[nodiscard]] int gpus() const { return tensor * pipeline * data; }
  [[nodiscard]] int stage_count() const { return static_cast<int>(stages.size()); }
  [[nodiscard]] int rank_of_stage(int stage) const { return stage % pipeline; }
};

struct PlanRequest {
  const ModelSpec& model;
  const ClusterSpec* cluster;  // nullptr: abstract stages on GPUs of their own
  const ParallelSpec& parallelism;
  const TrainingSpec& training;
  const Origins& origins;   // where the user wrote each value
  SourceLocation fallback;  // the scenario file, for values that were not written
};

// nullopt with diagnostics when tensor does not divide heads, stages do not divide layers, GPUs do not add
// up, and so on: every independent mistake at once, each with both numbers and a way out.
//   requires  degrees, batch sizes and counts of at least 1: the loader refuses less (throws InternalError
//   here).
[[nodiscard]] std::optional<ParallelPlan> resolve(const PlanRequest& request, Diagnostics& diagnostics);

}  // namespace stagecraft
