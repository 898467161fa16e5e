// What a scenario asks of a training job: plain values, every default filled in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/provenance.hpp"
#include "models/shard.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

struct ParallelSpec {
  int tensor = 1;
  int pipeline = 1;
  std::optional<int> data = {};  // absent: what the GPUs leave
  int context = 1;
  int expert = 1;          // ranks that share the routed experts of a layer
  int expert_tensor = 1;   // ways that each expert is split; dense weights are split `tensor` ways
  int virtual_stages = 1;  // model chunks per pipeline rank
  std::vector<std::int64_t> stage_layers = {};  // layers of each global stage; empty: even split
  bool embedding_as_layer = false;  // the even split counts the embedding (the loss) as one more layer
  bool loss_as_layer = false;
  bool sequence_parallel = false;
  ContextExchange context_exchange = ContextExchange::kRing;
  int zero_stage = 0;  // 0 | 1 | 2 | 3
  std::optional<int> zero_group =
      {};  // data x context ranks that share one sharded copy; absent: all of them
  std::array<Axis, kAxisCount> order = {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData,
                                        Axis::kPipeline};

  friend bool operator==(const ParallelSpec&, const ParallelSpec&) = default;
};

// What runs again in the backward pass.
enum class RecomputeMethod : std::uint8_t {
  kUniform,  // layers are checkpointed in groups of `layers`: one input kept a group, one group expanded at a
             // time
  kBlock,  // the first `layers` layers of each model chunk are checkpointed one by one, the others not at all
};
inline constexpr std::string_view kRecomputeMethodNames[] = {"uniform", "block"};

struct RecomputeSpec {
  Recompute granularity = Recompute::kNone;
  RecomputeModules modules = kCoreAttentionOnly;       // of selective
  RecomputeMethod method = RecomputeMethod::kUniform;  // of full
  std::int64_t layers = 1;                             // of full

  // Layers of multi-token prediction are repeated as any other; block counts layers of the decoder only.
  [[nodiscard]] bool repeats_mtp() const {
    return granularity == Recompute::kFull && method == RecomputeMethod::kUniform;
  }

  friend bool operator==(const RecomputeSpec&, const RecomputeSpec&) = default;
};

struct TrainingSpec {
  std::int64_t global_batch_size = 1;  // samples of an iteration
  std::int64_t micro_batch_size = 1;   // samples
  std::int64_t sequence_length = 0;    // tokens of a sample; 0 only for abstract stages
  Precision precision = Precision::kBf16;
  Precision gradient = Precision::kFp32;  // default: fp16 training reduces fp16, all else fp32
  Precision moment = Precision::kFp32;    // of both of Adam's moments
  bool master_weights = true;             // 16-bit weights have fp32 masters, which are stepped
  RecomputeSpec recompute = {};
  Attention attention = Attention::kFlash;

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

struct OverlapSpec {
  bool gradients = true;   // data-parallel reduction beside the backward
  bool parameters = true;  // ZeRO parameter gathering beside the forward: the next unit while one computes
  bool pipeline = true;    // messages beside compute; false: the sender waits for them
  bool tensor = false;     // tensor collectives in chunks beside their GEMM
  bool context = true;     // ring messages beside the attention block before
  bool expert = false;     // expert exchanges beside another micro-batch's compute
  bool shared_experts = false;  // expert exchanges beside the shared experts

  friend bool operator==(const OverlapSpec&, const OverlapSpec&) = default;
};

struct OptionsSpec {
  bool scatter_gather = true;  // tensor ranks send 1/t of a pipeline message each, receivers gather
  bool fused_kernels = true;
  bool gradient_accumulation_fusion = true;
  // Flash kernel, by its name in the profile ("fa2", "cudnn"): they differ by 1.6 to 1.9 x on one H100.
  // Empty: the one that the profile has in use.
  std::string attention_kernel = {};
  // A preset of scenarios/software/: gives the kernels where they are not given above, and what follows.
  std::string software = {};
  // Orders of passes that the software runs, as its preset lists them; absent: nothing is said of them.
  std::optional<std::vector<std::string>> schedules = {};
  bool recompute_stops_early = false;    // full recompute makes nothing that the backward does not read
  bool recompute_gathers_again = false;  // ZeRO 3: what is made again has a gather of its own
  // ZeRO 3: each matrix is gathered by itself and let go of, its gradient scattered by itself; both
  // collectives take lists of tensors, which are copied one by one, a piece for each rank.
  bool gathers_matrices = false;
  Duration piece_overhead{};  // of the host for a piece of such a list, beside the launch that copies it
  // What a DGX H100's host takes for an operator that the framework calls, and for each more launch in it.
  Duration operator_overhead{}, kernel_overhead{};
  CudaGraphs cuda_graphs = CudaGraphs::kNone;
  // What a pipeline message that the sender waits for costs beside its latency and bytes: until both hosts
  // have met and launched what comes next, their GPUs idle.
  Sourced<Duration> exchange_overhead{};
  // What a tensor-parallel all-reduce costs beside the time of its own: its ranks do not come at once, and
  // streams wait for each other. A reduce-scatter or an all-gather has half of it: with sequence parallelism
  // they are two for one.
  Sourced<Duration> tensor_collective_overhead{};
  bool dynamic_scaling = false;  // fp8 operands are scaled by what they hold, in each pass
  // All pipeline ranks begin to reduce a model chunk together: rank r does so r backwards after its own last.
  bool aligned_gradients = false;
  // ZeRO 2 and 3 under a pipeline: whole gradients are reduced behind a stage's last backward, not beside,
  // and weights that are kept gathered are so for all its micro-batches.
  bool reduces_behind_backward = false;
  // What a pass loses to sharded traffic beside it, in place of the profile's.
  std::optional<double> sharded_overlap_slowdown = {};
  // The share of the experts' exchanges that hides beside a neighbouring pass; absent: as in fused pairs.
  std::optional<double> expert_overlap = {};
  // Parameters of one gradient bucket; absent: max(40 M, 1 M * d), as Megatron-LM fills them.
  std::optional<std::int64_t> bucket_parameters = {};
  bool reshard_after_forward = true;  // ZeRO 3: weights are gathered again for the backward
  ExpertDispatcher expert_dispatcher = ExpertDispatcher::kAllToAll;
  bool fp8_parameters = false;  // weights of the layers' products are kept and gathered in fp8
  bool fp8_dispatch = false;    // tokens go to the experts in fp8
  SoftwareMemory memory = {};

  // Whether the host calls operator after operator, outside of CUDA graphs.
  [[nodiscard]] bool launches_operators() const {
    return cuda_graphs == CudaGraphs::kNone && operator_overhead > Duration::zero();
  }
  friend bool operator==(const OptionsSpec&, const OptionsSpec&) = default;
};

// Shares kept in host memory.
struct OffloadSpec {
  double optimizer = 0;    // fp32 master weights and moments; stepped on the host
  double activations = 0;  // written out behind the forward, read back before the backward
  double weights = 0;      // 16-bit weights, read for each pass

  friend bool operator==(const OffloadSpec&, const OffloadSpec&) = default;
};

struct ScheduleSpec {
  std::string name = "1f1b";
  int micro_batch_group = 0;  // of interleaving; 0 = the schedule's default
  bool global_step = true;    // false: a rank steps without waiting for all, as far as the schedule allows
  double rollback = 0;        // probability that a step which did not wait is taken back
  int iterations = 1;         // simulated in a row
  std::optional<double> fused_share = {};  // of the sum of its passes that a fused pair takes

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

}  // namespace stagecraft
