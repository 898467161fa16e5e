// One GPU's shard of a transformer: its share of the tokens, heads, widths and experts, and the choices that
// change its kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/enum_set.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

enum class Attention : std::uint8_t { kFlash, kUnfused };
inline constexpr std::string_view kAttentionNames[] = {"flash", "unfused"};

// The attention core of a job in fp8: in 16 bit, or in fp8 with scales as in the recipe of that name.
enum class Fp8Attention : std::uint8_t { kNone, kDelayed, kCurrent, kMxfp8 };
inline constexpr std::string_view kFp8AttentionNames[] = {"none", "delayed", "current", "mxfp8"};
[[nodiscard]] constexpr FlashOperands operands_of(Fp8Attention attention) {
  if (attention == Fp8Attention::kNone) return FlashOperands::kSixteenBit;
  return attention == Fp8Attention::kMxfp8 ? FlashOperands::kMxfp8 : FlashOperands::kFp8;
}

enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
inline constexpr std::string_view kRecomputeNames[] = {"none", "selective", "full"};

// Modules that selective recompute repeats, by Megatron-LM's names (core/transformer/transformer_config.py).
// The last two are PyTorch's: a checkpoint around the attention of a layer, as in NeMo AutoModel, and
// selective checkpointing by operator, as in torchtitan.
enum class RecomputeModule : std::uint8_t {
  kCoreAttention,  // scores, softmax, dropout, values; of flash at most its kernel (Shard::repeats_core)
  kLayerNorm,      // both norms of a layer: their outputs are not kept
  kMlp,            // the dense feed-forward block, from its input on
  kMoe,            // the expert block, its two exchanges included
  kMoeActivation,  // the activation between the experts' two GEMMs
  kSharedExperts,  // their feed-forward block
  kLatentUp,       // MLA's up projections and RoPE
  kSelfAttention,  // from the input of QKV to the output of the projection
  // Everything but the layer's input, the core's output and those of every second GEMM from the first on, counted
  // q, k, v, projection, gate, up, down (torchtitan, distributed/activation_checkpoint.py). Of experts those of
  // the shared ones count; routed ones are repeated but for what an all-to-all brought.
  kEverySecondProduct,
};
inline constexpr std::array<std::string_view, 9> kRecomputeModuleNames = {
    "core_attn", "layernorm",           "mlp", "moe", "moe_act", "shared_experts", "mla_up_proj",
    "self_attn", "every_second_product"};

using RecomputeModules = EnumSet<RecomputeModule>;
inline constexpr RecomputeModules kCoreAttentionOnly = {RecomputeModule::kCoreAttention};

// Exchange of keys and values between context ranks (Megatron-LM's cp_comm_type).
enum class ContextExchange : std::uint8_t { kRing, kAllGather, kAllToAll };
inline constexpr std::string_view kContextExchangeNames[] = {"p2p", "all-gather", "all-to-all"};

// Node-aware: a token goes once to each node with one of its experts, to the rank at the sender's place
// there, and from that to each rank with an expert. Results are summed on the same way back (DeepEP).
enum class ExpertDispatcher : std::uint8_t { kAllToAll, kAllGather, kNodeAware };
inline constexpr std::string_view kExpertDispatcherNames[] = {"all-to-all", "all-gather", "node-aware"};

// Memory that the training software needs beyond the mathematics. Defaults are Megatron-LM's with its own
// kernels.
struct SoftwareMemory {
  bool fused_loss = false, compiled_loss = false, fp32_logits = false;  // losses: loss_kind()
  // Head and loss run over so many parts of the tokens, each forward and backward before the next: there are
  // logits of one part only, and the gradient of the head's input is kept in place of the input.
  //   source  pytorch/torchtitan #2937 (ChunkedCELoss); Liger's fused linear cross entropy (arXiv 2410.10989)
  std::int64_t loss_chunks = 1;
  // Each tensor rank gathers all logits for the loss (PyTorch's plans with `output_layouts=Replicate()`, Transformers'
  // `colwise_gather_output`), which then needs nothing of the others.
  bool gathered_logits = false;
  // A stage keeps what it sent: until the backward of that micro-batch (DeepSpeed's pipeline), under
  // step_messages until the step ends, when the last stage joins what it kept (PyTorch's until mid 2025). Without a
  // pipeline the training loop keeps the logits that the model returned, until it returns the next.
  bool keep_outputs = false;
  // One unused 16-bit gradient per shape of weight (Transformer Engine from 2.3 on, where GEMMs accumulate
  // into the main gradients themselves).
  bool gradient_placeholders = false;
  // ZeRO 2 and 3: gradients stay unsharded until the last micro-batch, which alone reduces them (FSDP2 under
  // a pipeline, no_sync); absent: as the software does (OptionsSpec::keeps_whole).
  std::optional<bool> whole_gradients = {};
  // Gradients are copied into a bucket for the reduction, and joined for the optimizer step (DeepSpeed). In
  // bf16 those of a micro-batch lie beside the accumulated fp32 ones, which are cast as one tensor (its
  // BF16_Optimizer).
  bool bucket_copies = false;
  std::optional<double> fragmentation = {};  // reserved over allocated, less 1; absent: the profile's

  friend bool operator==(const SoftwareMemory&, const SoftwareMemory&) = default;
};

// What only a preset of the software says of memory: no key of a scenario has it.
struct MemoryRules {
  bool loss_in_16_bit = false, loss_parallel = false;  // losses: loss_kind()
  // No kernel is fused for the loss, unless the scenario names one: each of its operations reads and writes all
  // logits, as Megatron-Core's do.
  bool eager_loss = false;
  // Under sequence parallelism the backward reuses the gathered inputs of QKV, up and the head (PyTorch's
  // tensor-parallel linear layers save their input); Megatron-LM gathers them again. Layers with overlapped
  // tensor collectives gather again too, because their compiled gathers and GEMMs are fused.
  bool gathered_inputs = false;
  // ZeRO 3 shards the fp32 weights that the optimizer steps, and casts them for the gather (FSDP): there is
  // no 16-bit shard.
  bool fp32_shards = false;
  // ZeRO 3: what autograd saved of weights that were gathered for the forward lasts until the backward, but for
  // recomputed layers, beside what is gathered for the backward (DeepSpeed with layers of Transformers).
  bool keeps_gathered = false;
  // ZeRO 3 matrix by matrix: nothing is gathered ahead while this many parameters or more are gathered. 0: no
  // bound.
  //   source  deepspeed/runtime/zero/stage3.py of 2021, prefetch_next_sub_modules
  std::int64_t live_parameters = 0;
  // FSDP2: the parameters outside the layers (embedding, last norm, head) are one unit, gathered from the
  // forward's first use to the backward's last. Gathers allocate on a stream of their own, and no other
  // stream reuses its cached blocks.
  bool fully_shard = false;
  // ZeRO 2 and 3 of Megatron-FSDP, in parameters; under ZeRO 3 at least two mean layers. Reduced unsharded
  // gradients are freed when more than this many wait, and weights are gathered ahead up to half of it. 0:
  // one unit, or bucket, at a time.
  //   source  megatron/core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py, suggested_RS_queue_capacity
  //           and suggested_AG_prefetch_size; param_and_grad_buffer.py, wait_for_previous_grad_reduce.
  std::int64_t communication_unit = 0;
  // PyTorch's pipeline: every micro-batch has its own receive buffers, and what SoftwareMemory::keep_outputs
  // keeps stays until the step ends, the logits of the last stage with it.
  bool step_messages = false;
  // Gradients are autograd's: the backward makes them anew, as the step has dropped them, and DDP has buckets beside them
  // to reduce (PyTorch). Others have buffers that products add to (Megatron-LM), or gradients that they manage themselves.
  //   source  torch/optim/optimizer.py, zero_grad(set_to_none=True); torch/nn/parallel/distributed.py,
  //           gradient_as_bucket_view=False
  bool fresh_gradients = false;
  bool user_buffers = true;  // overlapped tensor collectives have registered buffers (TransformerEngine)

  [[nodiscard]] bool is_megatron_fsdp() const { return communication_unit > 0; }
  // Does it wrap modules as units, and those outside the layers as a root, as FSDP of any kind does? A unit is
  // reduced when its backward ends, even where weights stay gathered (SHARD_GRAD_OP).
  [[nodiscard]] bool wraps_modules() const { return fully_shard || fp32_shards || is_megatron_fsdp(); }

  friend bool operator==(const MemoryRules&, const MemoryRules&) = default;
};

// The loss, by the matrices of logits that it needs.
enum class LossKind : std::uint8_t {
  kSoftmax,  // Megatron-LM's: keeps the fp32 softmax of the 16-bit logits
  // The same as Megatron-Core compiles it (--cross-entropy-loss-fusion, native): its backward puts -1 at the
  // targets of the softmax in a copy, one more fp32 matrix (megatron/core/fusions/fused_cross_entropy.py,
  // calculate_gradients).
  kCompiled,
  k16Bit,  // flash_attn's CrossEntropyLoss: keeps the 16-bit logits, and makes a separate gradient
  // PyTorch's own over logits cast to fp32: casts, log-softmax and both gradients are whole fp32 matrices.
  kFp32Logits,
  // The same over logits that tensor ranks share. Its backward needs a third fp32 matrix besides the
  // log-softmax: minus one at the targets, the exponentials and their sum
  // (torch/distributed/tensor/parallel/loss.py, _nll_loss_and_log_softmax_backward).
  kShardedFp32Logits,
  kFused  // writes the gradient over the 16-bit logits
};

// The one that runs, of all that the scenario and its software name. `tensor` ranks share the logits.
[[nodiscard]] constexpr LossKind loss_kind(const SoftwareMemory& software, const MemoryRules& rules,
                                           std::int64_t tensor) {
  if (software.fused_loss) return LossKind::kFused;
  if (software.fp32_logits) {
    const bool sharded = rules.loss_parallel && tensor > 1 && !software.gathered_logits;
    return sharded ? LossKind::kShardedFp32Logits : LossKind::kFp32Logits;
  }
  if (rules.loss_in_16_bit) return LossKind::k16Bit;
  return software.compiled_loss ? LossKind::kCompiled : LossKind::kSoftmax;
}

// Does the loss leave logits that it does not keep itself?
[[nodiscard]] constexpr bool leaves_logits(const SoftwareMemory& software, const MemoryRules& rules,
                                           std::int64_t tensor) {
  const LossKind kind = loss_kind(software, rules, tensor);
  return software.loss_chunks == 1 && kind != LossKind::kFused && kind != LossKind::k16Bit;
}

// Is the loss a fused kernel? What Megatron-Core compiles is not, as it moves nearly as many bytes as without.
[[nodiscard]] constexpr bool fuses_loss(const SoftwareMemory& software, const MemoryRules& rules,
                                        bool fused_kernels) {
  if (software.fused_loss) return true;
  return fused_kernels && !rules.eager_loss && loss_kind(software, rules, 1) != LossKind::kCompiled;
}

// Split of the weights: dense ones `tensor` ways, routed experts `expert` x `expert_tensor` ways.
struct WeightSplit {
  std::int64_t tensor = 1, expert = 1, expert_tensor = 1;
};

// Operations that have a switch of their own, or that software came to fuse later than the others.
//   source  Megatron-LM, megatron/training/arguments.py: --no-bias-gelu-fusion, --no-bias-swiglu-fusion,
//           --no-rope-fusion; megatron/legacy/model: rms_norm.py, transformer.py (swiglu), and
//           rotary_pos_embedding.py are plain PyTorch; core/fusions/ has them from 2024 on
enum class LateFusion : std::uint8_t { kRmsNorm, kSwiglu, kRope, kGelu };
inline constexpr std::array<std::string_view, 4> kLateFusionNames = {"rmsnorm", "swiglu", "rope", "gelu"};
using LateFusions = EnumSet<LateFusion>;

// Have operands of the layers' products 4 bits?
[[nodiscard]] constexpr bool casts_to_fp4(Precision precision, Fp8Recipe recipe) {
  return precision == Precision::kFp8 && recipe == Fp8Recipe::kNvfp4;
}

// Has Transformer Engine a fused block of experts for such products?
[[nodiscard]] constexpr bool has_fused_experts(Precision precision, Fp8Recipe recipe) {
  return precision == Precision::kFp8 && (recipe == Fp8Recipe::kMxfp8 || recipe == Fp8Recipe::kNvfp4);
}

struct Shard {
  std::int64_t sequence = 0;     // s, tokens of a sample
  std::int64_t micro_batch = 1;  // b, samples
  std::int64_t tensor = 1;       // t
  std::int64_t context = 1;  // c; a rank holds s/c tokens of each sample, as two chunks: causal work is even
  std::int64_t expert = 1;   // e, ranks that share the routed experts
  std::int64_t expert_tensor = 1;  // et, ways that each expert is split
  bool sequence_parallel = false;
  bool replicated_embedding = false;  // each tensor rank holds the whole word embedding
  Precision precision = Precision::kBf16;
  // Weights, their gradients and the residual stream are in fp32; PyTorch casts what products read, weights anew in
  // each forward, and adds fp32 to what they write.
  //   source  PyTorch's documentation, torch.amp, "CUDA Ops that can autocast to float16" and "... to float32";
  //           aten/src/ATen/autocast_mode.cpp, cached_cast
  bool autocast = false;
  Precision gradient = Precision::kFp32;  // dtype in which gradients are accumulated and reduced
  Precision moment = Precision::kFp32;    // precision of both Adam moments
  bool master_weights = true;             // 16-bit weights have fp32 masters, which are stepped
  bool master_remainders = false;         // masters keep only the 16 bits that bf16 weights lack
  // The optimizer steps operation by operation over all tensors, with one more list of them for the square roots of the
  // second moments (PyTorch's `foreach` implementation, the default of its Adam and AdamW unless they are `fused`).
  //   source  torch/optim/adamw.py, _multi_tensor_adamw
  bool foreach_step = false;
  Attention attention = Attention::kFlash;
  Recompute recompute = Recompute::kNone;
  RecomputeModules modules = kCoreAttentionOnly;  // modules of selective recompute
  bool joins_clamps =
      false;  // a fused gate reads clamped halves that were joined; else it clamps them itself
  bool repeats_flash = false;  // a recomputed core runs its flash kernel again, which nothing needs
  // Recompute ends with the last tensor that the backward reads: the last projection of a dense layer or
  // module is skipped (PyTorch's non-reentrant checkpoints).
  bool recompute_stops_early = false;
  bool fused_kernels = true;  // without it nothing is fused
  LateFusions unfused = {};   // and these run unfused even so
  LateFusions fused = {};     // these run fused in any case
  bool gradient_accumulation_fusion = true;
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;
  // Layouts that products with one scale a tensor read. 2: a GEMM takes both operands along k, so that a
  // tensor of two passes needs a transposed copy (Hopper); 1: any (Blackwell).
  double fp8_layouts = 2;
  // GEMM weights of the layers are stored and gathered in fp8: the optimizer step casts them, and a pass
  // makes at most a transposed copy.
  bool fp8_parameters = false;
  Fp8Attention fp8_attention = Fp8Attention::kNone;
  bool fused_experts = false;  // the experts are Transformer Engine's fused block, where it has one
  // ZeRO 3: weights are gathered in every pass, so Transformer Engine casts them in each forward and keeps
  // the transposes for the backward.
  bool gathered_weights = false;
  ContextExchange context_exchange = ContextExchange::kRing;
  ExpertDispatcher expert_dispatcher = ExpertDispatcher::kAllToAll;
  bool fp8_dispatch = false;            // tokens and gradients sent to the experts are fp8
  bool overlap_tensor = false;          // tensor collectives overlap their GEMM in chunks (user buffers)
  bool functional_collectives = false;  // tensor collectives are PyTorch's (waits_for_tensor())
  bool overlap_context = true;          // ring messages overlap the previous block of the core
  bool overlap_shared_experts = false;  // expert exchanges overlap the shared experts
  SoftwareMemory software = {};
  MemoryRules rules = {};

  [[nodiscard]] std::int64_t tokens() const { return sequence * micro_batch / context; }  // T
  [[nodiscard]] std::int64_t local_tokens() const {
    return sequence_parallel ? tokens() / tensor : tokens();
  }  // T'
  // Ranks that share the word embedding, and that share the logits of the loss.
  [[nodiscard]] std::int64_t embedding_ranks() const { return replicated_embedding ? 1 : tensor; }
  [[nodiscard]] std::int64_t loss_ranks() const { return software.gathered_logits ? 1 : tensor; }
  [[nodiscard]] bool gathers_logits() const { return loss_ranks() < tensor; }
  // Products keep their inputs in fp8, and weights have copies in it (Transformer Engine); torchao keeps
  // inputs as they came and casts them again.
  [[nodiscard]] bool keeps_fp8() const {
    return precision == Precision::kFp8 && fp8_recipe != Fp8Recipe::kTorchao;
  }
  // A block has a scale along each of its dimensions: what two passes read is cast twice, never transposed.
  [[nodiscard]] bool scales_blocks() const {
    return fp8_recipe == Fp8Recipe::kBlockwise || fp8_recipe == Fp8Recipe::kMxfp8 ||
           fp8_recipe == Fp8Recipe::kNvfp4;
  }
  [[nodiscard]] bool casts_to_fp4() const { return stagecraft::casts_to_fp4(precision, fp8_recipe); }
  // Does the flash kernel read Q, K and V in fp8?
  [[nodiscard]] bool attends_in_fp8() const {
    return fp8_attention != Fp8Attention::kNone && precision == Precision::kFp8 &&
           attention == Attention::kFlash;
  }
  // Do O and the gradients of Q, K and V leave it in fp8?
  [[nodiscard]] bool core_writes_fp8() const {
    return attends_in_fp8() && fp8_attention == Fp8Attention::kDelayed;
  }
  // The shard by which the operands of such a core are cast and kept: they have no transposed copies.
  [[nodiscard]] Shard of_fp8_core() const {
    Shard core = *this;
    core.fp8_recipe = fp8_attention == Fp8Attention::kMxfp8     ? Fp8Recipe::kMxfp8
                      : fp8_attention == Fp8Attention::kCurrent ? Fp8Recipe::kCurrent
                                                                : Fp8Recipe::kDelayed;
    core.fp8_layouts = 1;
    return core;
  }
  // Do the experts' products end in their activation and, with the scales of MXFP8, in its cast?
  [[nodiscard]] bool fuses_experts() const {
    return fused_experts && fused_kernels && has_fused_experts(precision, fp8_recipe);
  }
  // The shard of the residual stream.
  [[nodiscard]] Shard of_stream() const {
    Shard stream = *this;
    if (autocast) stream.precision = Precision::kFp32;
    return stream;
  }
  [[nodiscard]] WeightSplit weight_split() const {
    return {.tensor = tensor, .expert = expert, .expert_tensor = expert_tensor};
  }
  [[nodiscard]] LossKind loss() const { return loss_kind(software, rules, tensor); }
  [[nodiscard]] bool leaves_logits() const { return stagecraft::leaves_logits(software, rules, tensor); }
  [[nodiscard]] bool chunks_loss() const { return software.loss_chunks > 1; }
  [[nodiscard]] bool fuses_loss() const { return stagecraft::fuses_loss(software, rules, fused_kernels); }
  // With one expert rank there is no exchange.
  [[nodiscard]] bool sends_by_node() const {
    return expert > 1 && expert_dispatcher == ExpertDispatcher::kNodeAware;
  }
  // Tokens arrive at the experts as fp8: those of an all-gather do not.
  [[nodiscard]] bool sends_fp8() const {
    return fp8_dispatch && expert > 1 && expert_dispatcher != ExpertDispatcher::kAllGather;
  }
  // Products read tokens as they were sent; others have them cast back to 16 bit first.
  [[nodiscard]] bool reads_sent() const {
    return sends_fp8() && precision == Precision::kFp8 && !casts_to_fp4();
  }
  // Flash recomputes the scores inside its backward kernel: nothing is left to repeat.
  [[nodiscard]] bool repeats_core() const {
    return recomputes(RecomputeModule::kCoreAttention) && (attention == Attention::kUnfused || repeats_flash);
  }
  [[nodiscard]] bool recomputes(RecomputeModule module) const {
    return recompute == Recompute::kSelective && modules.has(module);
  }
  // The shard of layers that full recompute repeats, or leaves alone: it may repeat some of them only.
  [[nodiscard]] Shard of_layers(bool recomputed) const {
    Shard shard = *this;
    if (!recomputed && recompute == Recompute::kFull) shard.recompute = Recompute::kNone;
    return shard;
  }
  // Each tensor collective of PyTorch's parallel layers ends before the next kernel begins. It works along the
  // first dimension: what several samples gather along the sequence is copied behind it, what they scatter
  // before it.
  //   source  torch/distributed/_functional_collectives.py, all_gather_tensor and reduce_scatter_tensor:
  //           chunk and cat (of one sample later versions take a view, _maybe_view_chunk_cat). Asynchronous
  //           tensor parallelism replaces both: torch/distributed/_symmetric_memory.
  [[nodiscard]] bool waits_for_tensor() const { return functional_collectives && !overlap_tensor; }
  [[nodiscard]] bool copies_samples() const {
    return waits_for_tensor() && sequence_parallel && tensor > 1 && micro_batch > 1;
  }
  // Inputs of column-parallel GEMMs stay as sequence parallelism gathered them: not gathered in chunks, nor
  // made again from a norm's input.
  [[nodiscard]] bool keeps_gathered() const {
    return rules.gathered_inputs && sequence_parallel && tensor > 1 && !overlap_tensor &&
           !recomputes(RecomputeModule::kLayerNorm);
  }
};

}  // namespace stagecraft
