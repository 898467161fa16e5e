// The training job of a scenario: plain values, every default filled in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/provenance.hpp"
#include "models/model_spec.hpp"
#include "models/shard.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

struct ParallelSpec {
  int tensor = 1;
  int pipeline = 1;
  std::optional<int> data = {};  // absent: derived from the number of GPUs
  int context = 1;
  int expert = 1;          // ranks that share the routed experts of a layer
  int expert_tensor = 1;   // ways that each expert is split; dense weights are split `tensor` ways
  int virtual_stages = 1;  // model chunks per pipeline rank
  std::vector<std::int64_t> stage_layers = {};  // layers of each global stage; empty: even split
  bool embedding_as_layer = false;  // the even split counts the embedding (the loss) as one more layer
  bool loss_as_layer = false;
  bool sequence_parallel = false;
  bool replicated_embedding = false;  // each tensor rank holds the whole word embedding
  ContextExchange context_exchange = ContextExchange::kRing;
  int zero_stage = 0;  // 0 | 1 | 2 | 3
  // Data x context ranks that share one sharded copy; absent: all of them.
  std::optional<int> zero_group = {};
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
  SixteenBitLayers sixteen_bit_layers = {};  // of fp8
  bool autocast = false;                     // 16-bit products of fp32 weights (Shard::autocast)
  Precision gradient = Precision::kFp32;     // default: fp16 training reduces fp16, all else fp32
  Precision moment = Precision::kFp32;       // precision of both Adam moments
  bool master_weights = true;                // 16-bit weights have fp32 masters, which are stepped
  bool master_remainders = false;            // masters keep only the 16 bits that bf16 weights lack
  RecomputeSpec recompute = {};
  Attention attention = Attention::kFlash;

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

// A key of a section whose values are all of one kind, and its field.
template <class Spec, class Value>
struct SectionKey {
  const char* name;
  Value Spec::*field;
};

struct OverlapSpec {
  bool gradients = true;   // data-parallel reduction overlaps the backward
  bool parameters = true;  // ZeRO parameter gathering overlaps the forward: the next unit while one computes
  bool pipeline = true;    // messages overlap compute; false: the sender waits for them
  bool tensor = false;     // tensor collectives overlap their GEMM in chunks
  bool context = true;     // ring messages overlap the attention block before them
  bool expert = false;     // expert exchanges overlap another micro-batch's compute
  bool shared_experts = false;  // expert exchanges overlap the shared experts

  friend bool operator==(const OverlapSpec&, const OverlapSpec&) = default;
};
// In the order in which a scenario prints them.
inline constexpr SectionKey<OverlapSpec, bool> kOverlapKeys[] = {
    {"gradients", &OverlapSpec::gradients},
    {"parameters", &OverlapSpec::parameters},
    {"pipeline", &OverlapSpec::pipeline},
    {"tensor", &OverlapSpec::tensor},
    {"context", &OverlapSpec::context},
    {"expert", &OverlapSpec::expert},
    {"shared_experts", &OverlapSpec::shared_experts},
};

// What only a preset of the software says: no key of a scenario has it.
struct SoftwareRules {
  // Orders of passes that the software runs; absent: nothing is said of them.
  std::optional<std::vector<std::string>> schedules = {};
  LateFusions unfused = {};
  bool repeats_flash = false;  // a recomputed core runs its flash kernel again
  bool joins_clamps = false;   // clamps ahead of a gate are kernels of their own (Shard::joins_clamps)
  bool recompute_stops_early = false;    // full recompute skips tensors that the backward does not read
  bool recompute_gathers_again = false;  // ZeRO 3: recompute gathers the weights once more
  // ZeRO 3: each matrix is gathered and freed by itself, and its gradient scattered by itself. Both
  // collectives take lists of tensors with a piece for each rank, copied one by one.
  bool gathers_matrices = false;
  Duration piece_overhead{};  // host time per piece of such a list, without the launch of the copy
  // Time of a DGX H100's host per operator that the framework calls, and per further launch in it.
  Duration operator_overhead{}, kernel_overhead{};
  // Overhead of a pipeline message that the sender waits for, besides its latency and bytes: the GPUs idle
  // until both hosts have met and launched the next work.
  Sourced<Duration> exchange_overhead{};
  // Overhead of a tensor-parallel all-reduce besides its own time: its ranks arrive at different times, and
  // streams wait for each other. A reduce-scatter or an all-gather has half of it, because sequence
  // parallelism replaces one all-reduce by two of them.
  Sourced<Duration> tensor_collective_overhead{};
  bool functional_collectives = false;  // tensor collectives are PyTorch's (Shard::waits_for_tensor)
  // All pipeline ranks start to reduce a model chunk together: rank r waits for r backwards after its own
  // last one.
  bool aligned_gradients = false;
  // ZeRO 2 and 3 under a pipeline: unsharded gradients are reduced after a stage's last backward without
  // overlap. Weights that stay gathered do so for all its micro-batches.
  bool reduces_behind_backward = false;
  // 1 and the share of overlapped sharded traffic that passes lose, in place of the profile's value.
  std::optional<double> sharded_overlap_slowdown = {};
  // Fraction of the expert exchanges that a neighbouring pass hides; absent: as in fused pairs.
  std::optional<double> expert_overlap = {};
  // GEMM weights of the layers are stored and gathered in fp8 where optimizer states are sharded.
  bool shards_fp8 = false;
  MemoryRules memory = {};

  // Does it run orders of passes at all? Software without one has neither pipeline nor tensor ranks.
  [[nodiscard]] bool has_orders() const { return !schedules || !schedules->empty(); }
  // Does it run this order? Where nothing is said of orders, it may run any.
  [[nodiscard]] bool may_run(std::string_view order) const {
    return !schedules || std::ranges::find(*schedules, order) != schedules->end();
  }

  // Does recompute stop at the last product that is read again? Only where a checkpoint group is one layer.
  [[nodiscard]] bool stops_early(const RecomputeSpec& recompute) const {
    return recompute_stops_early && (recompute.method == RecomputeMethod::kBlock || recompute.layers == 1);
  }

  friend bool operator==(const SoftwareRules&, const SoftwareRules&) = default;
};

struct OptionsSpec {
  bool scatter_gather = true;  // tensor ranks send 1/t of a pipeline message each, receivers gather
  bool fused_kernels = true;
  LateFusions unfused = {};  // even where kernels are fused; the software may leave more (rules.unfused)
  LateFusions fused = {};    // even where kernels are not fused, or the software leaves them
  bool gradient_accumulation_fusion = true;
  // Flash kernel, by its name in the profile ("fa2", "cudnn"): they differ by 1.6 to 1.9 x on one H100.
  // Empty: the one that the profile has in use.
  std::string attention_kernel = {};
  // A preset of scenarios/software/. It sets what is not given of the kernels and of the recipe, and `rules`.
  std::string software = {};
  RecomputeModules selective = kCoreAttentionOnly;  // what the word selective names
  CudaGraphs cuda_graphs = CudaGraphs::kNone;
  // Parameters of one gradient bucket; absent: max(40 M, 1 M * d), as Megatron-LM fills them.
  std::optional<std::int64_t> bucket_parameters = {};
  // ZeRO 3: weights are gathered again for the backward; absent: as the software does (keeps_whole).
  std::optional<bool> reshard_after_forward = {};
  ExpertDispatcher expert_dispatcher = ExpertDispatcher::kAllToAll;
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;  // by default the software's
  // GEMM weights of the layers are stored and gathered in fp8; absent: as the software does
  // (rules.shards_fp8).
  std::optional<bool> fp8_parameters = {};
  bool fp8_dispatch = false;  // tokens go to the experts in fp8
  Fp8Attention fp8_attention = Fp8Attention::kNone;
  bool fused_experts = false;
  bool foreach_step = false;  // the optimizer runs operation by operation (Shard::foreach_step)
  SoftwareMemory memory = {};
  SoftwareRules rules = {};  // of the software

  // Does the host launch operator by operator, outside of CUDA graphs?
  [[nodiscard]] bool launches_operators() const {
    return cuda_graphs == CudaGraphs::kNone && rules.operator_overhead > Duration::zero();
  }
  [[nodiscard]] bool fuses_experts(Precision precision) const {
    return fused_experts && fused_kernels && has_fused_experts(precision, fp8_recipe);
  }
  [[nodiscard]] bool holds_fp8(int zero_stage) const {
    return fp8_parameters.value_or(rules.shards_fp8 && zero_stage > 0 && fp8_recipe != Fp8Recipe::kNvfp4);
  }
  // Does the software leave gathered weights and unsharded gradients whole between the micro-batches of a
  // stage? FSDP2 does so under a pipeline, and nowhere else. `zero_stage` is the one in effect.
  [[nodiscard]] bool keeps_whole(int zero_stage, int pipeline) const {
    return rules.reduces_behind_backward && zero_stage >= 2 && pipeline > 1;
  }
  [[nodiscard]] bool reshards(int zero_stage, int pipeline) const {
    return reshard_after_forward.value_or(!keeps_whole(zero_stage, pipeline));
  }
  [[nodiscard]] bool keeps_gradients_whole(int zero_stage, int pipeline) const {
    return memory.whole_gradients.value_or(keeps_whole(zero_stage, pipeline));
  }
  // What a word of `training.recompute` names.
  [[nodiscard]] RecomputeSpec recompute(Recompute granularity) const {
    return {.granularity = granularity,
            .modules = granularity == Recompute::kSelective ? selective : kCoreAttentionOnly};
  }
  friend bool operator==(const OptionsSpec&, const OptionsSpec&) = default;
};

// Shares kept in host memory.
struct OffloadSpec {
  double optimizer = 0;    // fp32 master weights and moments; stepped on the host
  double activations = 0;  // fraction written out after the forward and read back before the backward
  double weights = 0;      // 16-bit weights, read for each pass

  friend bool operator==(const OffloadSpec&, const OffloadSpec&) = default;
};
inline constexpr SectionKey<OffloadSpec, double> kOffloadKeys[] = {
    {"optimizer", &OffloadSpec::optimizer},
    {"activations", &OffloadSpec::activations},
    {"weights", &OffloadSpec::weights},
};

struct ScheduleSpec {
  std::string name = "1f1b";
  int micro_batch_group = 0;  // micro-batch group of interleaving; 0 = the schedule's default
  bool global_step = true;    // false: a rank steps without waiting for all, as far as the schedule allows
  double rollback = 0;        // probability that a step which did not wait is taken back
  int iterations = 1;         // simulated in a row
  std::optional<double> fused_share = {};  // duration of a fused pair as a fraction of the sum of its passes

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

}  // namespace stagecraft
