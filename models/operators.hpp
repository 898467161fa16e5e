// Operators that one GPU executes for one micro-batch: those of a layer, the embedding, the head, and the
// optimizer step.
//
// An operator has a shape, FLOPs and bytes; it has no time (models/compute_cost.hpp prices compute, topology/
// prices collectives). Symbols as in docs/notation.md: s b h a k q f V t, T = s*b tokens, T' = T/t under
// sequence parallelism.
//
//   source  Narayanan et al. (arXiv 2104.04473), Korthikanti et al. (arXiv 2205.05198), Megatron-LM's
//           operator list; bytes per element are operand counts at 16 bit (docs/op-inventory.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/by_pass.hpp"
#include "models/model_spec.hpp"
#include "models/shard.hpp"
#include "models/token_spread.hpp"

namespace stagecraft {

enum class OpKind : std::uint8_t {
  kGemm,
  kBatchedGemm,  // unfused attention's
  kGroupedGemm,  // the experts of a rank: gemm.batch GEMMs (m, n, k) in one kernel, m the balanced mean
  kFlashForward,
  kFlashBackward,
  kMemory,       // memory-bound: norms, activations, dropout, softmax, optimizer
  kPermutation,  // memory-bound with scattered rows: tokens sorted by expert and back
  kLoss,         // memory-bound too; bytes of the unfused loss, of which a fused kernel moves a part
  kCollective,   // over `group`
};

// Over which ranks a collective runs.
enum class CommGroup : std::uint8_t { kTensor, kContext, kExpert, kExpertTensor };

// Compute that a collective may overlap. The pricing decides how much of it is hidden.
enum class Beside : std::uint8_t {
  kNothing,
  kWeightGradient,  // issued before the weight-gradient GEMM of its layer
  kNextGemm,        // gathered chunk by chunk while the next GEMM of the list consumes it
  kPreviousGemm,    // reduced chunk by chunk while the previous GEMM of the list produces it
  kAttentionBlock,  // a ring message overlaps the attention block before it: each block but the last hides one
  kSharedExperts,   // overlaps a half of the shared experts, on a stream of its own
};

// The halves of the shared experts' block: its first product and activation, its second product.
enum class SharedHalf : std::uint8_t { kNone, kUp, kDown };

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmLayout layout = GemmLayout::kTN;
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

// The attention core of one kernel: `batch` heads (samples x heads of the rank), queries x keys scores each.
struct AttentionShape {
  std::int64_t batch = 0, queries = 0, keys = 0;
  std::int64_t query_size = 0, value_size = 0;  // sizes of one head: d_qk, d_v
  bool causal = true;       // half of the scores are masked; FLOPs are of the full square all the same
  std::int64_t window = 0;  // keys that a query meets at most, fewer than `keys`; 0: no window
  FlashOperands operands = FlashOperands::kSixteenBit;
  [[nodiscard]] bool two_sizes() const { return query_size != value_size; }
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

struct Op {
  OpKind kind = OpKind::kMemory;
  std::string_view name;       // "qkv", "softmax", ... static storage
  GemmShape gemm{};            // kGemm, kBatchedGemm, kGroupedGemm
  AttentionShape attention{};  // kFlashForward, kFlashBackward
  Flops flops{};               // for math kinds; flash counts the full square
  Bytes bytes{};               // HBM traffic; payload of a collective in nccl-tests' convention
  std::int64_t elements = 0;   // elements of the main tensor of a memory-bound kind; 0: none
  CollectiveKind collective = CollectiveKind::kAllReduce;
  CommGroup group = CommGroup::kTensor;
  Beside beside = Beside::kNothing;
  SharedHalf shared = SharedHalf::kNone;  // half that contains this operator, or that an exchange overlaps
  int kernels = 1;                        // launches that this stands for; a collective runs so often
  // Launches of the host for an operator that a framework runs as many small ones, in place of `kernels`.
  int host_launches = 0;
  bool joined = false;  // a grouped GEMM whose kernel goes from group to group without a pause, launched once
  bool routed = false;  // its shapes depend on routing, anew in each micro-batch
  // Bytes between nodes of a collective that goes over nodes first; `bytes` are then those inside nodes.
  std::optional<NodeCopies> nodes = {};
  // A collective beside a larger one of its group: its ranks meet for that one, and need not wait twice.
  bool with_another = false;
  // Precision of a GEMM that differs from the others.
  std::optional<Precision> precision = {};
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;  // of a GEMM in fp8
};

using Ops = std::vector<Op>;

using LayerOps = ByPass<Ops>;  // what runs again is what shard.recompute says

[[nodiscard]] LayerOps layer_operators(const TransformerSpec& model, const Shard& shard,
                                       LayerKind kind = LayerKind::kDense);
// Operators of a layer of multi-token prediction besides its layer and a second head: the lookup of the
// shifted tokens, two norms and the projection.
[[nodiscard]] LayerOps mtp_operators(const TransformerSpec& model, const Shard& shard);
[[nodiscard]] LayerOps embedding_operators(const TransformerSpec& model, const Shard& shard);  // first stage
// Last stage: final norm, head and loss. The loss is counted unfused, or as Megatron-Core compiles it; as kLoss,
// a fused one, a profile's loss_traffic scales it.
// In chunks of the tokens each operator of head and loss is there once a chunk, in the pass that it belongs to, although
// the forward runs them all: on the stage with the head its backward comes next in any order.
[[nodiscard]] LayerOps head_operators(const TransformerSpec& model, const Shard& shard);

// The optimizer step over `parameters` held, of which `sharded` are stepped here (parameters/N under ZeRO >=
// 1): zeroing, unless the backward makes them anew, norm, Adam, copy to 16 bit.
[[nodiscard]] Ops optimizer_operators(std::int64_t parameters, std::int64_t sharded, const Shard& shard);

// Of what one GPU holds, the dense parameters' and the routed experts': the former are reduced over data x
// context ranks, the latter over the expert-data ranks.
template <class T>
struct Share {
  T dense{}, experts{};
  [[nodiscard]] T all() const { return dense + experts; }
  friend Share operator-(const Share& x, const Share& y) {
    return {.dense = x.dense - y.dense, .experts = x.experts - y.experts};
  }
  friend bool operator==(const Share&, const Share&) = default;
};
using ParameterShare = Share<std::int64_t>;
using ByteShare = Share<Bytes>;
[[nodiscard]] inline ByteShare operator*(const ParameterShare& share, Bytes each) {
  return {.dense = share.dense * each, .experts = share.experts * each};
}
// A layer's parameters: split t ways, key/value heads replicated where k < t; routed experts e x et ways;
// router, norms and MLA's down projections on every rank.
[[nodiscard]] ParameterShare layer_parameters(const TransformerSpec& model, LayerKind kind,
                                              const WeightSplit& split);
// The GEMM weights of a layer that fp8 computes with: all but the router and the shared gate, and none of a layer in 16
// bit.
[[nodiscard]] ParameterShare product_weights(const TransformerSpec& model, LayerKind kind,
                                             const WeightSplit& split);
// Parameters of a layer of multi-token prediction with its inner layer; embedding and head are shared. A last
// stage without the embedding keeps one copy for all its predictions (stage_share).
[[nodiscard]] ParameterShare mtp_parameters(const TransformerSpec& model, const WeightSplit& split);
[[nodiscard]] ParameterShare mtp_product_weights(const TransformerSpec& model, const WeightSplit& split);
// The word embedding matrix, split t ways.
[[nodiscard]] std::int64_t word_parameters(const TransformerSpec& model, std::int64_t tensor);
// Vocabulary split t ways (as given, never padded; the fullest rank counts), positions on every rank.
[[nodiscard]] std::int64_t embedding_parameters(const TransformerSpec& model, std::int64_t tensor);
// Final norm and the matrix, also if tied: with p > 1 each end keeps its own copy.
[[nodiscard]] std::int64_t head_parameters(const TransformerSpec& model, std::int64_t tensor);

// Model FLOPs of one iteration of B samples: three times the forward, attention counted dense.
//   = 72 B l s h^2 (1 + s/6h + V/12lh) for a GPT with f = 4h (Korthikanti et al., appendix A).
[[nodiscard]] Flops model_flops(const TransformerSpec& model, std::int64_t samples, std::int64_t sequence);

// Layers of a model, or some of them.
struct LayerCounts {
  LayerNumbers layers = {};
  std::int64_t predictions = 0;  // layers of multi-token prediction, each with its projection
};
[[nodiscard]] LayerCounts layers_in(const TransformerSpec& model);

// Model FLOPs plus recomputed FLOPs: 96 B l s h^2 (1 + s/6h + V/16lh) for `full`, 72 ... (1 + s/3h + V/12lh)
// for `selective` of the core. The second is the paper's convention, three times the FLOPs of the core that
// layer_operators repeats. A flash core and other modules count the FLOPs that they repeat.
struct RecomputedShare {
  Recompute granularity = Recompute::kNone;
  RecomputeModules modules = kCoreAttentionOnly;
  bool flash_core = false;              // the repeated core is a flash kernel
  bool stops_early = false;             // Shard::recompute_stops_early
  std::optional<LayerCounts> layers{};  // layers that full recompute repeats; none: all of the model's
};
[[nodiscard]] Flops hardware_flops(const TransformerSpec& model, std::int64_t samples, std::int64_t sequence,
                                   const RecomputedShare& recompute);

}  // namespace stagecraft
