// Work of one rank in an iteration, operator by operator: the common terms of a prediction and a trace.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "formats/kineto_kernels.hpp"
#include "formats/kineto_operators.hpp"
#include "formats/kineto_samples.hpp"
#include "sim/diff/occupation.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// Number per iteration, and the time of all together. A trace gives the mean over its steps.
struct OpTotal {
  double count = 0;
  double seconds = 0;

  void add(double times, double of_all) {
    count += times;
    seconds += of_all;
  }
  friend bool operator==(const OpTotal&, const OpTotal&) = default;
};

// A GEMM and that of the transposed matrices are the same work: m >= n.
struct ProductKey {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  friend auto operator<=>(const ProductKey&, const ProductKey&) = default;
};
[[nodiscard]] inline ProductKey product_key(std::int64_t m, std::int64_t n, std::int64_t k,
                                            std::int64_t batch) {
  return {.m = std::max(m, n), .n = std::min(m, n), .k = k, .batch = batch};
}

// Communication over the ranks of a group; the kind is "all-reduce", "send-receive", or the name of NCCL's
// kernel where the kind is unknown.
struct TrafficKey {
  Activity group = Activity::kOtherGroup;
  std::string kind;
  friend auto operator<=>(const TrafficKey&, const TrafficKey&) = default;
};

struct NamedTotal {
  std::set<std::string> names;  // "qkv", or "aten::mm"
  OpTotal total;
};

// An operator besides GEMMs and communication: its role and its number of elements, as far as known.
struct OtherKey {
  WorkKind kind = WorkKind::kMemory;
  OperatorRole role = OperatorRole::kNone;
  bool backward = false;
  std::int64_t elements = 0;  // 0: not known
  std::string name;           // "ffn norm", or "aten::native_layer_norm"
  friend auto operator<=>(const OtherKey&, const OtherKey&) = default;
};

struct RankOps {
  Occupation occupation;
  // Number of compute and communication kernels; an operator of a prediction counts all its kernels.
  double kernels = 0;
  std::map<ProductKey, NamedTotal> products;
  std::map<std::string, OpTotal> shapeless;  // GEMMs of unknown shape, by kernel
  std::map<TrafficKey, OpTotal> traffic;
  std::map<OtherKey, OpTotal> others;
  std::map<WorkKind, OpTotal> kinds;  // all compute
};

struct PredictedRank {
  RankOps ops;
  Duration beyond{};  // compute of the timeline minus its operators: slow-downs, slowest GPU, launch floors
};
// Work of the pipeline rank of `rank`, on the GPU whose collectives are priced first. GEMMs, attention and
// memory-bound operators are priced alone; the extra time of passes is `beyond`. Abstract stages have no
// operators, only times.
[[nodiscard]] PredictedRank predicted_rank(const Scenario& scenario, const Simulation& simulation, int rank);

// Work of a rank in the counted steps. Groups are identified by their ranks on the plan's meshes, otherwise
// by their description.
[[nodiscard]] RankOps measured_rank(const MeasuredTrace& measured, const ParallelPlan& plan, int rank);

}  // namespace stagecraft
