// How one GPU sees a transformer: its share of the tokens, heads, widths and experts, and the choices that
// change its kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

enum class Attention : std::uint8_t { kFlash, kUnfused };
inline constexpr std::string_view kAttentionNames[] = {"flash", "unfused"};

enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
inline constexpr std::string_view kRecomputeNames[] = {"none", "selective", "full"};

// What selective recompute repeats, by Megatron-LM's names (core/transformer/transformer_config.py); the last
// two are PyTorch's: a checkpoint around the attention of a layer, as NeMo AutoModel has one around each of its
// parts, and selective checkpointing by operator, as torchtitan sets it up.
enum class RecomputeModule : std::uint8_t {
  kCoreAttention,  // scores, softmax, dropout, values; nothing where attention is flash
  kLayerNorm,      // both norms of a layer: their outputs are not kept
  kMlp,            // the dense feed-forward block, from its input on
  kMoe,            // the expert block, its two exchanges included
  kMoeActivation,  // the activation between the experts' two products
  kSharedExperts,  // their feed-forward block
  kLatentUp,       // MLA's up projections and RoPE
  kSelfAttention,  // from the input of QKV to the output of the projection
  // All but the layer's input, the core's output and the output of every second product, counted q, k, v,
  // projection, gate, up, down (torchtitan, distributed/activation_checkpoint.py).
  kEverySecondProduct,
};
inline constexpr std::array<std::string_view, 9> kRecomputeModuleNames = {
    "core_attn", "layernorm",           "mlp", "moe", "moe_act", "shared_experts", "mla_up_proj",
    "self_attn", "every_second_product"};

class RecomputeModules {
 public:
  constexpr RecomputeModules() = default;
  [[nodiscard]] constexpr RecomputeModules with(RecomputeModule module) const {
    RecomputeModules more = *this;
    more.bits_ = static_cast<std::uint16_t>(more.bits_ | 1U << static_cast<unsigned>(module));
    return more;
  }
  [[nodiscard]] constexpr bool has(RecomputeModule module) const {
    return (bits_ >> static_cast<unsigned>(module) & 1U) != 0;
  }
  friend constexpr bool operator==(const RecomputeModules&, const RecomputeModules&) = default;

 private:
  std::uint16_t bits_ = 0;
};
inline constexpr RecomputeModules kCoreAttentionOnly =
    RecomputeModules().with(RecomputeModule::kCoreAttention);

// How the context ranks share keys and values (Megatron-LM's cp_comm_type).
enum class ContextExchange : std::uint8_t { kRing, kAllGather, kAllToAll };
inline constexpr std::string_view kContextExchangeNames[] = {"p2p", "all-gather", "all-to-all"};

// Node-aware: a token goes once to each node that has one of its experts, to the rank of the sender's place
// there, and from that to each rank that has one; results come back summed the same way (DeepEP).
enum class ExpertDispatcher : std::uint8_t { kAllToAll, kAllGather, kNodeAware };
inline constexpr std::string_view kExpertDispatcherNames[] = {"all-to-all", "all-gather", "node-aware"};

// What the training software leaves on the GPU beyond what the mathematics needs. Defaults are Megatron-LM's
// with its own kernels.
struct SoftwareMemory {
  bool fused_loss = false;  // the loss writes the gradient over the 16-bit logits; else it keeps their fp32
                            // softmax
  // The loss is PyTorch's own over logits cast to fp32: casts, log-softmax and both gradients are whole fp32
  // matrices.
  bool fp32_logits = false;
  // Where neither is so: the loss keeps the 16-bit logits and makes their gradient beside them (flash_attn's
  // CrossEntropyLoss).
  bool loss_in_16_bit = false;
  // With fp32_logits, the loss of tensor ranks is PyTorch's over sharded logits, whose backward makes a third
  // fp32 matrix: minus one at the targets, the exponentials and their sum, beside the log-softmax
  // (torch/distributed/tensor/parallel/loss.py, _nll_loss_and_log_softmax_backward).
  bool loss_parallel = false;
  // Under sequence parallelism the backward reads what was gathered for QKV, up and the head (PyTorch's
  // tensor parallel linear layers save their input), where Megatron-LM gathers again. Where tensor
  // collectives overlap, layers do so too, whose compiled gathers and products are one.
  bool gathered_inputs = false;
  bool keep_outputs = false;  // a stage keeps what it sent until the backward (DeepSpeed's pipeline)
  // One gradient in 16 bit, never read, for each shape of weight (Transformer Engine from 2.3 on, where the
  // products add to the main gradients themselves).
  bool gradient_placeholders = false;
  // ZeRO 2 and 3: gradients stay whole until the last micro-batch, which alone reduces them (FSDP2 under a
  // pipeline, no_sync).
  bool whole_gradients = false;
  // Gradients are copied into a bucket to be reduced, and joined to be stepped (DeepSpeed). In bf16 those of
  // a micro-batch lie beside the accumulated fp32 ones, which are cast as one tensor (its BF16_Optimizer).
  bool bucket_copies = false;
  // ZeRO 3 shards the fp32 weights that the optimizer steps, and casts what it gathers (FSDP): no 16-bit
  // shard lies beside them.
  bool fp32_shards = false;
  // FSDP2: what no layer holds (embedding, last norm, head) is one unit, gathered from the forward's first
  // use to the backward's last; gathers allocate on a stream of their own, whose cached blocks no other
  // stream reuses.
  bool fully_shard = false;
  // ZeRO 2 and 3 of Megatron-FSDP, in parameters, and of ZeRO 3 never less than two mean layers: whole gradients
  // that were reduced are let go of when more than so many wait, and weights are gathered ahead up to half of
  // it; 0: one unit, or bucket, by one.
  //   source  megatron/core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py, suggested_RS_queue_capacity and
  //           suggested_AG_prefetch_size; param_and_grad_buffer.py, wait_for_previous_grad_reduce.
  std::int64_t communication_unit = 0;
  // PyTorch's pipeline: every micro-batch has receive buffers of its own, and a stage's outputs, the last
  // one's logits too, stay until the step ends.
  bool step_messages = false;
  bool user_buffers = true;  // overlapped tensor collectives have registered buffers (TransformerEngine)
  std::optional<double> fragmentation = {};  // reserved over allocated, less 1; absent: the profile's

  friend bool operator==(const SoftwareMemory&, const SoftwareMemory&) = default;
};

// How many ways weights are split: dense ones `tensor` ways, routed experts `expert` x `expert_tensor` ways.
struct WeightSplit {
  std::int64_t tensor = 1, expert = 1, expert_tensor = 1;
};

struct Shard {
  std::int64_t sequence = 0;     // s, tokens of a sample
  std::int64_t micro_batch = 1;  // b, samples
  std::int64_t tensor = 1;       // t
  std::int64_t context = 1;  // c; a rank holds s/c tokens of each sample, as two chunks: causal work is even
  std::int64_t expert = 1;   // e, ranks that share the routed experts
  std::int64_t expert_tensor = 1;  // et, ways that each expert is split
  bool sequence_parallel = false;
  Precision precision = Precision::kBf16;
  Precision gradient = Precision::kFp32;  // dtype in which gradients are accumulated and reduced
  Precision moment = Precision::kFp32;    // of both of Adam's moments
  bool master_weights = true;             // 16-bit weights have fp32 masters, which are stepped
  Attention attention = Attention::kFlash;
  Recompute recompute = Recompute::kNone;
  RecomputeModules modules = kCoreAttentionOnly;  // where recompute is selective
  // What is made again ends with the last tensor that the backward reads: the last projection of a dense layer
  // or of a module is not (PyTorch's checkpoints without re-entrance).
  bool recompute_stops_early = false;
  bool fused_kernels = true;
  bool gradient_accumulation_fusion = true;
  // fp8: every pass scales its operands anew, weights as well (torchao); else scales are those of earlier
  // iterations, and weights were cast once (Transformer Engine's delayed scaling).
  bool dynamic_scaling = false;
  // Weights of the layers' products are kept and gathered in fp8: they are cast where they are stepped, and a
  // pass makes a transposed copy at most.
  bool fp8_parameters = false;
  // ZeRO 3: weights come anew in every pass, so that Transformer Engine casts them in each forward and keeps
  // the transposes for the backward.
  bool gathered_weights = false;
  ContextExchange context_exchange = ContextExchange::kRing;
  ExpertDispatcher expert_dispatcher = ExpertDispatcher::kAllToAll;
  bool fp8_dispatch = false;            // what is sent to the experts, forward and backward, is fp8
  bool overlap_tensor = false;          // tensor collectives in chunks beside their GEMM (user buffers)
  bool overlap_context = true;          // ring messages beside the previous block of the core
  bool overlap_shared_experts = false;  // expert exchanges beside the shared experts
  SoftwareMemory software = {};

  [[nodiscard]] std::int64_t tokens() const { return sequence * micro_batch / context; }  // T
  [[nodiscard]] std::int64_t local_tokens() const {
    return sequence_parallel ? tokens() / tensor : tokens();
  }  // T'
  // Products keep their inputs in fp8, and weights have copies in it (Transformer Engine); torchao keeps
  // inputs as they came and casts them again.
  [[nodiscard]] bool keeps_fp8() const { return precision == Precision::kFp8 && !dynamic_scaling; }
  [[nodiscard]] WeightSplit weight_split() const {
    return {.tensor = tensor, .expert = expert, .expert_tensor = expert_tensor};
  }
  // One expert rank has nobody to send to, however it would.
  [[nodiscard]] bool sends_by_node() const {
    return expert > 1 && expert_dispatcher == ExpertDispatcher::kNodeAware;
  }
  // Tokens arrive at the experts as fp8: those of an all-gather do not.
  [[nodiscard]] bool sends_fp8() const {
    return fp8_dispatch && expert > 1 && expert_dispatcher != ExpertDispatcher::kAllGather;
  }
  [[nodiscard]] bool recomputes(RecomputeModule module) const {
    return recompute == Recompute::kSelective && modules.has(module);
  }
};

}  // namespace stagecraft
