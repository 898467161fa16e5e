// schedule x prices -> Program: the task graph of one iteration.
//
// Folded: one simulated rank per pipeline rank stands for all its tensor and data replicas, which do the same
// at the same time. Unfolded: every replica of every rank is simulated; both give the same times bit for bit
// (a property test).
//
//   compute stream of a rank   its passes in schedule order; a blocking send follows its pass
//   send link of a rank        messages in flight, in the order of their passes to one rank and, in closed
//                              form, through one NIC; else at once
//   data stream of a rank      gradient reductions, parameter gathers
//   replicas stream of a rank  of hybrid sharding within nodes: sums over the replicas of its shards
//   tail                       reductions -> the other copies -> tied embeddings -> step
//   several iterations         follow each other on every stream; zero-length tasks "end of iteration", whose
//                              micro-batch is the number of the iteration, stand where all ranks are done
//
// A fused pair is two consecutive tasks on the compute stream. The first waits for the inputs of both passes;
// the outputs of both leave at the end of the second.
//
// Copies differ where some of their ranks change speed (sim/lower/fault_plan.hpp). A copy carries the traffic
// of as many replicas as its weight says.
//
// On shared links (`network: flow`) messages, reductions, gathers and the tied embedding are flows, and each
// collective is a task of its own. A pass with collectives is cut into several tasks. The first is its
// compute, with the hidden traffic spread evenly over it, or in a fused pair that of both passes over the
// compute of both: a lower rate for longer than the collectives themselves. Its exposed tensor, context and
// expert collectives follow one after another. The wait for the host, or for its copies, is spread over both
// kinds by their times, so that a pass lasts max(host, compute + traffic) however slow the traffic is. The
// gradient norm, one number, is pure latency.
//
// On any network overlapped gradients and weights take a share of the compute device while their traffic
// lasts: of ZeRO units OverlapCosts::slowdown - 1, at most all of it; in buckets 1 - 1/slowdown.
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

// Time of a rank's optimizer step.
enum class StepRule : std::uint8_t {
  kBarrier,  // when every rank has its gradients and knows the gradient norm
  // When it has its own gradients and the partial norms of the ranks before it are valid. A later failure is
  // rolled back (Qi et al., ICLR'24, section 4).
  kPostValidated,
  kOwn,      // when it has its own gradients
  kDelayed,  // in the next iteration, before the first forward that uses the new weights; passes go on
             // (PipeDream-2BW)
};

struct LowerOptions {
  bool blocking_messages = false;  // the sender's stream waits for its message
  // A message waits for the one before it to the same rank, as NCCL's do, and for the one before it through
  // the same NIC, which they would share: both arrive when the second one does. Else any number are on their
  // way.
  bool queued_messages = false;
  bool overlap_gradients = true;   // reduce buckets beside the last backward of each chunk
  bool overlap_parameters = true;  // gather buckets beside the first forward of each chunk
  // Buckets of a chunk are not reduced as they become ready. Rank r starts all of them r backwards after the
  // chunk's last one, or after its own last pass. The only chunk of rank 0 is reduced as its buckets become
  // ready.
  //   source  Megatron-LM, megatron/core/pipeline_parallel/schedules.py, grad_sync_func (--align-grad-reduce)
  bool aligned_gradients = false;
  bool reduce_last = false;    // ZeRO 2 and 3: the last micro-batch of a stage reduces for all
  bool reduce_behind = false;  // reductions start after the whole backward, and do not overlap it
  bool gather_once = false;    // weights that stay gathered are gathered by the first forward of a stage only
  int replicas = 1;            // simulated copies of the pipeline; 1 = folded
  std::vector<int> weights{};  // by copy: number of replicas that it stands for; empty: all equal
  std::vector<RankSpeed> speeds{};     // speed changes of the copies, ascending by time
  int iterations = 1;                  // consecutive iterations
  StepRule step = StepRule::kBarrier;  // kOwn and kDelayed without reductions of sharded weights
  Duration rollback{};                 // expected loss by roll-backs, before every iteration but the first
  std::vector<FusedPairRule> pairs{};  // durations of fused pairs, by place; empty: the sum of their passes
  // The links of a cluster that traffic shares; nullptr: the network is closed-form.
  const SharedNetwork* network = nullptr;
};

// Number of gathers and reductions of a ZeRO unit in an iteration of `micro_batches`.
struct UnitCounts {
  double gathers = 0, reductions = 0;
};
[[nodiscard]] UnitCounts unit_counts(const StagePrice& stage, const UnitPrice& unit,
                                     const LowerOptions& options, int micro_batches);
// Most gathers of a unit per micro-batch: for its forward, for recompute, and for its backward.
inline constexpr int kMostUnitGathers = 3;

// Where links are shared, the program has all links of the cluster, by EdgeId: see fold_links().
//   requires schedule, prices of equal shape (stages, ranks), and more than one iteration of an order that
//            never drains.
[[nodiscard]] Program lower(const Schedule& schedule, const IterationPrices& prices,
                            const LowerOptions& options);

}  // namespace stagecraft
