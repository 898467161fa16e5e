// Pieces of a stage: layers by kind, its ends, multi-token prediction, each with its operators and its price
// (sim/lower/stage_operators.hpp lists them).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/operators.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

struct StagePiece {
  std::string name, all;   // "layer of experts", "layers of experts"
  std::int64_t times = 0;  // in the stage
  LayerOps ops;
  StagePrice price;  // price of ops, with overlap and host time
};

// The pieces of the stages of a scenario, each stage priced once.
class StagePieces {
 public:
  // Both arguments must outlive this object. requires a transformer, with a cluster and a profile where a
  // stage is queried.
  StagePieces(const Scenario& scenario, const ParallelPlan& plan) : scenario_(scenario), plan_(plan) {}

  // The pieces on the GPU of the rank whose groups are slowest: the others wait for it.
  [[nodiscard]] const std::vector<StagePiece>& of(HeldStage held);

 private:
  [[nodiscard]] std::vector<StagePiece> priced(HeldStage held) const;

  const Scenario& scenario_;
  const ParallelPlan& plan_;
  std::map<std::pair<int, int>, std::vector<StagePiece>> known_;  // by stage and copy
};

}  // namespace stagecraft
