// What one rank does in an iteration, operator by operator: the terms in which a prediction and a trace are
// compared.
#pragma once

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

// How often in an iteration, and how long all of them take. A trace gives the mean over its steps.
struct OpTotal {
  double count = 0;
  double seconds = 0;

  void add(double times, double of_all) {
    count += times;
    seconds += of_all;
  }
  friend bool operator==(const OpTotal&, const OpTotal&) = default;
};

// A product and that of the transposed matrices are the same work: m >= n.
struct ProductKey {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  friend auto operator<=>(const ProductKey&, const ProductKey&) = default;
};
[[nodiscard]] ProductKey product_key(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);

// Communication over the ranks of a group; the kind is "all-reduce", "send-receive", or what NCCL's kernel is
// called where no kind is known.
struct TrafficKey {
  Activity group = Activity::kOtherGroup;
  std::string kind;
  friend auto operator<=>(const TrafficKey&, const TrafficKey&) = default;
};

struct NamedTotal {
  std::set<std::string> names;  // "qkv", or "aten::mm"
  OpTotal total;
};

// An operator that is neither a product nor communication: what it does and on how much, as far as that is
// known.
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
  double kernels = 0;  // of compute and communication; an operator of a prediction counts those it stands for
  std::map<ProductKey, NamedTotal> products;
  std::map<std::string, OpTotal> shapeless;  // products of unknown shape, by kernel
  std::map<TrafficKey, OpTotal> traffic;
  std::map<OtherKey, OpTotal> others;
  std::map<WorkKind, OpTotal> kinds;  // all compute
};

// What the pipeline rank of `rank` does, on the GPU whose collectives are priced first. Products, attention
// and memory-bound operators are as they are priced alone; what passes take beyond them is `beyond`. Abstract
// stages have no operators, only times.
struct PredictedRank {
  RankOps ops;
  Duration beyond{};  // compute of the timeline minus its operators: slow-downs, slowest GPU, launch floors
};
[[nodiscard]] PredictedRank predicted_rank(const Scenario& scenario, const Simulation& simulation, int rank);

// What a rank did in the steps that count. Groups are told by their ranks on the plan's meshes, else by their
// description.
[[nodiscard]] RankOps measured_rank(const MeasuredTrace& measured, const ParallelPlan& plan, int rank);

}  // namespace stagecraft
