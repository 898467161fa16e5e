// Weights, gradients and optimizer states of one pipeline rank: what its memory ledger holds whatever runs.
//
//   source  states by ZeRO stage: Rajbhandari et al. (arXiv 1910.02054), section 5; what software leaves
//           beside them: at each function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/lower/gradient_queue.hpp"
#include "sim/lower/ledger_items.hpp"
#include "sim/lower/memory_ledger.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {

// Do gradients stay unsharded until the last micro-batch under ZeRO 2 and 3? With one micro-batch there is
// nothing to accumulate.
[[nodiscard]] bool accumulates_whole(const PricingRequest& job);

// Bytes of a stage's unsharded gradients beyond the rank's shard: live from the stage's first backward to its
// last, then reduced. Zero where nothing is sharded, or where each backward reduces its gradients.
//   source  torch/distributed/pipelining/stage.py, backward_maybe_with_nosync, whose last backward reduces;
//           torch/distributed/fsdp/_fully_shard/_fsdp_param.py, to_accumulated_grad_if_needed.
[[nodiscard]] ByteShare whole_gradients(const TransformerSpec& model, const PricingRequest& job, int stage);

// Gradients that the backward makes anew in each iteration: of software that drops them behind the step, where there is
// one micro-batch to make them. With more of them, or in a pipeline, they are there all the time.
[[nodiscard]] FreshGradients fresh_gradients(const PricingRequest& job);
// What the passes of a job do with what they keep and make.
[[nodiscard]] PassHabits habits_of(const PricingRequest& job);

// Gradients of a stage under Megatron-FSDP, which are not reduced yet while a pass that makes weight gradients
// runs.
[[nodiscard]] QueuedGradients waiting_gradients(const TransformerSpec& model, const PricingRequest& job,
                                                int stage);
// Adds both kinds of unsharded gradients to what the passes of a stage hold.
void add_gradients_of_passes(PassMemory& memory, const TransformerSpec& model, const PricingRequest& job,
                             int stage);

class RankStates {
 public:
  RankStates(const TransformerSpec& model, const LedgerRequest& request, int rank);

  // Units are gathered or come from the host, and their gradients are unsharded, while passes run. The
  // optimizer step finds what stays.
  enum class When : std::uint8_t { kPasses, kStep };
  void add_weights(LedgerItems& items, When when) const;
  void add_gradients(LedgerItems& items, When when) const;
  // Adds the unsharded gradients of a stage, live while it runs backward passes.
  void add_whole_gradients(LedgerItems& items, int stage) const;
  // Adds the gradients that wait for their reduction while a pass runs.
  void add_waiting_gradients(LedgerItems& items, const Action& action) const;
  void add_optimizer(LedgerItems& items) const;
  // Adds the memory of the optimizer step beyond the states, after the activations are freed.
  void add_step(LedgerItems& step) const;
  // Memory of the optimizer step that fits in no freed block of the activations.
  [[nodiscard]] Bytes step_blocks() const;
  // Memory reserved by the gather stream that no other stream can use.
  [[nodiscard]] Bytes stream_blocks() const;
  // Gradients that the passes make in memory of the stream that reduces them, where no activation was.
  [[nodiscard]] Bytes gradients_apart() const;
  // Offloaded states, and the fp32 gradients that the host steps them with.
  [[nodiscard]] Bytes on_host() const;
  [[nodiscard]] const std::vector<int>& held() const { return held_; }  // stages, by chunk

 private:
  // Do 16-bit gradients of one micro-batch lie beside those that are accumulated in fp32?
  bool accumulates_apart() const;
  bool makes_gradients() const { return fresh_gradients(request_.job).dense > 0; }
  // The stage that the software's optimizer is made for, whether or not anyone shares.
  int runs_zero() const { return request_.job.parallelism.zero_stage; }
  int zero() const { return request_.job.zero_stage(); }
  ByteShare weights() const;
  ByteShare weights_of(const StageUnit& unit) const;
  std::vector<Bytes> gathers() const;
  std::vector<std::int64_t> matrices() const;
  Bytes largest_unit(Bytes each) const;
  void add_unit_gradients(LedgerItems& items) const;
  Bytes beside_shards(Bytes whole, const ByteShare& all) const;
  std::optional<Bytes> gathered_alone() const;
  Bytes gathered_units() const;
  Bytes kept_by_autograd() const;
  Bytes staged_units() const;
  Bytes fp8_copies() const;
  Bytes joined_gradients() const;
  Bytes large_copies() const;
  ByteShare held_bytes(const ByteShare& bytes, bool cut, double kept) const;
  void add_sharded(LedgerItems& items, MemoryClass kind, const ByteShare& bytes, bool cut, double kept) const;

  const TransformerSpec& model_;
  const LedgerRequest& request_;
  const ParallelPlan& plan_;
  const Shard& shard_;
  const ParameterShare parameters_, products_;  // all parameters, and those that fp8 GEMMs use
  std::vector<int> held_;
  std::vector<StageUnit> units_;  // units of all its stages
};

}  // namespace stagecraft
