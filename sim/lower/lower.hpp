// schedule x prices -> Program: the task graph of one iteration.
//
// Folded: one simulated rank per pipeline rank stands for all its tensor and data replicas, which do the same
// at the same time. Unfolded: every replica of every rank is simulated; both give the same times bit for bit
// (a property test).
//
//   compute stream of a rank   its passes in schedule order; a blocking send follows its pass
//   send link of a rank        messages in flight, any number at once
//   data stream of a rank      gradient reductions, parameter gathers
//   replicas stream of a rank  of hybrid sharding within nodes: sums over the replicas of its shards
//   tail                       reductions -> the other copies -> tied embeddings -> step
//   several iterations         follow each other on every stream; zero-length tasks "end of iteration", whose
//                              micro-batch is the number of the iteration, stand where all ranks are done
//
// A fused pair is two tasks on the compute stream, one behind the other: the first waits for what both need,
// and what both make leaves at the end of the second.
//
// Copies that are unlike, because some of their ranks change their speed (sim/lower/fault_plan.hpp), carry
// traffic by their weights.
//
// On shared links (`network: flow`) messages, reductions, gathers and the tied embedding are flows, each
// collective a task of its own. Passes are flows as well where collectives run inside them, and cut in as
// many tasks as they need: their compute, over which what it hides is spread evenly, which asks less of a
// link at a time than the collectives themselves do, and for longer; and behind it what they wait for, in
// tensor, context and expert groups one after another. The gradient norm, one number, is latency alone. Units
// of sharded weights and gradients that move beside a pass take their share of the compute device while they
// do (overlap_slowdown - 1, at most all of it), in place of a pass that lasts longer as a whole; buckets of
// whole ones do so on any network (1 - 1/overlap_slowdown).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/lower/fault_plan.hpp"
#include "sim/lower/flow_plan.hpp"
#include "sim/lower/fused_pair.hpp"
#include "sim/lower/prices.hpp"
#include "sim/program/program.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// When a rank steps its weights.
enum class StepRule : std::uint8_t {
  kBarrier,  // when every rank has its gradients and all have heard the gradient norm
  // When it has its own gradients and has heard from the ranks before it that all is well so far; what turns
  // out wrong later is rolled back (Qi et al., ICLR'24, section 4).
  kPostValidated,
  kOwn,      // when it has its own gradients
  kDelayed,  // in the next iteration, before the first forward that uses the new weights; passes go on
             // (PipeDream-2BW)
};

struct LowerOptions {
  bool blocking_messages = false;  // the sender's stream waits for its message
  bool overlap_gradients = true;   // reduce buckets beside the last backward of each chunk
  bool overlap_parameters = true;  // gather buckets beside the first forward of each chunk
  // Buckets of a chunk are not reduced as they become ready: rank r begins with all of them r backwards after
  // the chunk's last one, or after its last pass; a lone chunk's on rank 0 as they become ready.
  //   source  Megatron-LM, megatron/core/pipeline_parallel/schedules.py, grad_sync_func (--align-grad-reduce)
  bool aligned_gradients = false;
  bool reduce_last = false;     // ZeRO 2 and 3: the last micro-batch of a stage reduces for all
  bool reduce_behind = false;   // and does so behind its whole backward, not beside
  bool gather_once = false;     // of weights that are kept gathered: by the first forward of a stage alone
  double overlap_slowdown = 1;  // a pass lasts so much longer while gradients or weights move beside it
  int replicas = 1;             // simulated copies of the pipeline; 1 = folded
  std::vector<int> weights{};   // by copy: how many replicas it stands for; empty: all the same
  std::vector<RankSpeed> speeds{};       // of the copies, ascending by time
  int iterations = 1;                    // in a row
  StepRule step = StepRule::kBarrier;    // kOwn and kDelayed without reductions of sharded weights
  Duration rollback{};                   // expected loss by roll-backs, before every iteration but the first
  std::optional<FusedPairRule> pairs{};  // what pairs last; none: the sum of their passes
  // Links that are shared; nullptr: the network is closed-form. Prices then carry traffic.
  const SharedNetwork* network = nullptr;
};

// How often a unit of sharded weights is gathered and its gradients reduced in an iteration of so many
// micro-batches.
struct UnitCounts {
  double gathers = 0, reductions = 0;
};
[[nodiscard]] UnitCounts unit_counts(const StagePrice& stage, const UnitPrice& unit,
                                     const LowerOptions& options, int micro_batches);
// Of one micro-batch at most: for its forward, for what is made again, and for its backward.
inline constexpr int kMostUnitGathers = 3;

// Where links are shared, the program has all links of the cluster, by EdgeId: see fold_links().
//   requires schedule, prices of equal shape (stages, ranks), and more than one iteration of an order that
//            never drains.
[[nodiscard]] Program lower(const Schedule& schedule, const IterationPrices& prices,
                            const LowerOptions& options);

}  // namespace stagecraft
