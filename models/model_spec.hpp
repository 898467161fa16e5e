// The architecture of a model, as numbers.
//
//   l layers, h hidden, a heads, k key/value heads, q head size, f feed-forward width, V vocabulary.
//   Families `gpt` and `llama` only set defaults; every number can be set alone.
//   source  parameter formulas: op-count tables of Narayanan et al., SC'21, eq. 2 and the Llama papers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class Family : std::uint8_t { kGpt, kLlama };
inline constexpr std::array<std::string_view, 2> kFamilyNames = {"gpt", "llama"};
enum class Activation : std::uint8_t { kGelu, kSwiglu, kGeglu };
inline constexpr std::array<std::string_view, 3> kActivationNames = {"gelu", "swiglu", "geglu"};
// Is the block of three matrices, one of them a gate? Which function the gate has decides neither time nor memory.
//   source  Shazeer (arXiv 2002.05202), section 2.
[[nodiscard]] constexpr bool is_gated(Activation activation) {
  return activation != Activation::kGelu;
}
enum class Normalization : std::uint8_t { kLayerNorm, kRmsNorm };
inline constexpr std::array<std::string_view, 2> kNormalizationNames = {"layernorm", "rmsnorm"};
// Where the norms of a layer are: before attention and the feed-forward block, behind them on what they add to the
// residual stream, or both.
//   source  Llama; Team OLMo (arXiv 2501.00656), section 3.2; Gemma Team (arXiv 2408.00118), section 2.
enum class Norms : std::uint8_t { kBefore, kAfter, kBoth };
inline constexpr std::array<std::string_view, 3> kNormsNames = {"before", "after", "both"};
// The vectors of Q and K that are normalised: none, each head, or all heads of a token together (OLMo 2).
enum class QkNorm : std::uint8_t { kNone, kHead, kWidth };
enum class Position : std::uint8_t { kLearned, kRope };
inline constexpr std::array<std::string_view, 2> kPositionNames = {"learned", "rope"};

// Multi-head latent attention (DeepSeek-V2/V3): queries and key/values pass through low ranks, and the
// position part of a head is separate. Q and K have nope + rope columns per head; V has its own width.
//   source  DeepSeek-AI (arXiv 2405.04434), section 2.1.
struct LatentAttentionSpec {
  std::int64_t query_rank = 0;  // 0: queries are projected in one step
  std::int64_t kv_rank = 0;
  std::int64_t nope_head_size = 0;
  std::int64_t rope_head_size = 0;
  std::int64_t value_head_size = 0;

  friend bool operator==(const LatentAttentionSpec&, const LatentAttentionSpec&) = default;
};

// Mixture of experts in place of the feed-forward block. Every expert is a block of the model's activation,
// `E` experts of width f_e, of which each token visits K, and shared experts that all tokens visit.
struct ExpertsSpec {
  std::int64_t count = 0;  // E, routed experts
  std::int64_t top_k = 1;  // K
  // Consecutive experts form groups of equal size. A token chooses its experts within `top_groups` groups, so
  // it goes to few nodes. (DeepSeek-V3, arXiv 2412.19437, section 2.1.2; n_group and topk_group of its
  // configuration.)
  std::int64_t groups = 1;
  std::int64_t top_groups = 1;
  std::int64_t ffn_hidden = 0;         // f_e, of one routed expert
  std::int64_t shared = 0;             // shared experts
  std::int64_t shared_ffn_hidden = 0;  // width of one shared expert; f_e unless given
  bool shared_gate = false;            // h more parameters: a gate on the shared experts' output (Qwen2-MoE)
  bool router_bias = false;            // E more parameters (gpt-oss)
  std::vector<std::int64_t> dense_layers = {};  // layers without experts, ascending from 0
  // Capacity of an expert, as a multiple of the balanced share: excess tokens are dropped. 0: dropless.
  double capacity_factor = 0;
  bool pad_to_capacity = false;  // experts with fewer tokens are padded, so that all have as many
  double imbalance = 1;  // beta: tokens of the busiest expert rank over the balanced share; 1 = balanced

  [[nodiscard]] std::int64_t shared_width() const { return shared * shared_ffn_hidden; }  // f_s
  // The router's choices do not matter: an expert never has more than the balanced share, or is padded.
  [[nodiscard]] bool levels() const {
    return pad_to_capacity || (capacity_factor > 0 && capacity_factor <= 1);
  }
  // Experts that a token may choose among once its groups are chosen.
  [[nodiscard]] std::int64_t candidates() const { return count / groups * top_groups; }
  friend bool operator==(const ExpertsSpec&, const ExpertsSpec&) = default;
};

// Attention over the last `tokens` tokens, a token itself among them, in all layers but `full_layers`.
//   source  Beltagy et al. (arXiv 2004.05150), section 3.1; Jiang et al. (arXiv 2310.06825), section 2.
struct SlidingWindowSpec {
  std::int64_t tokens = 0;
  std::vector<std::int64_t> full_layers = {};  // layers that attend to all tokens, ascending from 0

  friend bool operator==(const SlidingWindowSpec&, const SlidingWindowSpec&) = default;
};

// First and last layers whose products stay in 16 bit where the others run in fp8.
//   source  NVIDIA (arXiv 2509.25149), section 4.1; NVIDIA/Megatron-LM, --first-last-layers-bf16.
struct SixteenBitLayers {
  std::int64_t first = 0, last = 0;

  friend bool operator==(const SixteenBitLayers&, const SixteenBitLayers&) = default;
};

// Kind of a layer: whether its block has experts, its attention a window, and its products 16 bit where others run in
// fp8. Two layers of one kind are identical.
enum class LayerKind : std::uint8_t {
  kDense,
  kExperts,
  kDenseInWindow,
  kExpertsInWindow,
  kDenseIn16Bit,
  kExpertsIn16Bit,
  kDenseInWindowIn16Bit,
  kExpertsInWindowIn16Bit
};
inline constexpr std::array kLayerKinds = {LayerKind::kDense,
                                           LayerKind::kExperts,
                                           LayerKind::kDenseInWindow,
                                           LayerKind::kExpertsInWindow,
                                           LayerKind::kDenseIn16Bit,
                                           LayerKind::kExpertsIn16Bit,
                                           LayerKind::kDenseInWindowIn16Bit,
                                           LayerKind::kExpertsInWindowIn16Bit};
[[nodiscard]] constexpr LayerKind layer_kind(bool experts, bool window, bool sixteen_bit) {
  return kLayerKinds[(experts ? 1U : 0U) + (window ? 2U : 0U) + (sixteen_bit ? 4U : 0U)];
}
[[nodiscard]] constexpr bool has_experts(LayerKind kind) {
  return static_cast<unsigned>(kind) % 2 != 0;
}
[[nodiscard]] constexpr bool in_window(LayerKind kind) {
  return static_cast<unsigned>(kind) / 2 % 2 != 0;
}
[[nodiscard]] constexpr bool in_sixteen_bit(LayerKind kind) {
  return static_cast<unsigned>(kind) / 4 != 0;
}

// Numbers of layers by kind.
struct LayerNumbers {
  std::int64_t dense = 0, experts = 0, dense_in_window = 0, experts_in_window = 0;
  std::int64_t dense_in_16_bit = 0, experts_in_16_bit = 0, dense_in_window_in_16_bit = 0,
               experts_in_window_in_16_bit = 0;

  [[nodiscard]] std::int64_t& operator[](LayerKind kind) { return this->*of(kind); }
  [[nodiscard]] std::int64_t operator[](LayerKind kind) const { return this->*of(kind); }
  [[nodiscard]] std::int64_t all() const { return without_experts() + with_experts(); }
  [[nodiscard]] std::int64_t with_experts() const {
    return experts + experts_in_window + experts_in_16_bit + experts_in_window_in_16_bit;
  }
  [[nodiscard]] std::int64_t without_experts() const {
    return dense + dense_in_window + dense_in_16_bit + dense_in_window_in_16_bit;
  }
  [[nodiscard]] std::int64_t with_window() const {
    return dense_in_window + experts_in_window + dense_in_window_in_16_bit + experts_in_window_in_16_bit;
  }
  // As if all attended to all tokens: by what decides the memory of a layer.
  [[nodiscard]] LayerNumbers by_memory() const {
    return {.dense = dense + dense_in_window,
            .experts = experts + experts_in_window,
            .dense_in_16_bit = dense_in_16_bit + dense_in_window_in_16_bit,
            .experts_in_16_bit = experts_in_16_bit + experts_in_window_in_16_bit};
  }
  LayerNumbers& operator+=(const LayerNumbers& other);
  friend bool operator==(const LayerNumbers&, const LayerNumbers&) = default;

 private:
  static std::int64_t LayerNumbers::*of(LayerKind kind) {
    static constexpr std::int64_t LayerNumbers::*kOf[] = {&LayerNumbers::dense,
                                                          &LayerNumbers::experts,
                                                          &LayerNumbers::dense_in_window,
                                                          &LayerNumbers::experts_in_window,
                                                          &LayerNumbers::dense_in_16_bit,
                                                          &LayerNumbers::experts_in_16_bit,
                                                          &LayerNumbers::dense_in_window_in_16_bit,
                                                          &LayerNumbers::experts_in_window_in_16_bit};
    static_assert(std::size(kOf) == kLayerKinds.size());
    return kOf[static_cast<std::size_t>(kind)];
  }
};

struct TransformerSpec {
  std::string name;
  Family family = Family::kGpt;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_sequence_length = 0;  // 0: not given; no learned position is counted then
  Activation activation = Activation::kGelu;
  Normalization normalization = Normalization::kLayerNorm;
  Norms norms = Norms::kBefore;
  Position position = Position::kLearned;
  bool tied_embeddings = true;
  bool biases = true;  // biases of linear layers; GPT has them, Llama has not
  // Bias of the QKV projection only: Qwen2 has it without the others; as `biases` unless given.
  bool qkv_bias = true;
  // Norms of Q and of K. Over each head 2q parameters a layer (Qwen3), over all (a + k)q (OLMo 2); twice as many where
  // they are LayerNorm.
  QkNorm qk_norm = QkNorm::kNone;
  bool dropout = true;  // masks are stored and dropout kernels run; GPT trains with it, Llama without

  // `head_size` is then nope + rope, kv_heads is heads.
  std::optional<LatentAttentionSpec> latent_attention = {};
  std::optional<ExpertsSpec> experts = {};
  std::optional<SlidingWindowSpec> sliding_window = {};
  // A number for each head beside the scores of its softmax (gpt-oss): a parameters a layer.
  bool attention_sinks = false;
  // Of how it is trained: set where the scenario's precision is fp8.
  SixteenBitLayers sixteen_bit = {};
  bool clamped_activation = false;  // the inputs of a gated block's activation are clamped (gpt-oss)
  // Multi-token prediction: extra layers after the last one and of its kind, each with a projection [h, 2h],
  // three norms, and a further head and loss (DeepSeek-V3, arXiv 2412.19437, section 2.2).
  std::int64_t mtp_layers = 0;

  [[nodiscard]] bool has_norms_before() const { return norms != Norms::kAfter; }
  [[nodiscard]] bool has_norms_behind() const { return norms != Norms::kBefore; }
  [[nodiscard]] bool has_dense_layers() const { return !experts || !experts->dense_layers.empty(); }
  [[nodiscard]] LayerKind kind_of(std::int64_t layer) const;  // of layers 0 .. layers-1
  // Of layers first .. end-1, and of all of them, without those of multi-token prediction.
  [[nodiscard]] LayerNumbers layers_between(std::int64_t first, std::int64_t end) const;
  [[nodiscard]] LayerNumbers numbers() const { return layers_between(0, layers); }
  // Heads and losses of a token: the next one's, and one of each layer of multi-token prediction.
  [[nodiscard]] std::int64_t heads_of_tokens() const { return 1 + mtp_layers; }
  [[nodiscard]] LayerKind mtp_kind() const { return kind_of(layers - 1); }

  friend bool operator==(const TransformerSpec&, const TransformerSpec&) = default;
};

// An abstract pipeline: costs per global stage given directly. A list has one entry per stage, or one for
// all.
struct StagesSpec {
  std::string name;
  std::vector<Duration> forward, input_gradient, weight_gradient;
  std::vector<Bytes> activation;  // that one micro-batch leaves on a stage for its backward
  std::vector<Bytes> gradient;    // gradients to reduce over data-parallel replicas at the end
  // Duration of a recompute pass, for schedules that have them; empty: that of a forward.
  std::vector<Duration> recompute = {};
  std::vector<Bytes> message = {};  // to the next stage; empty: the activations

  friend bool operator==(const StagesSpec&, const StagesSpec&) = default;
};

// The same pipeline with `parts` stages in place of each: a part has its share of costs, activations and gradients,
// and sends what the whole sent. Lists with an entry for each stage stay as they are.
[[nodiscard]] StagesSpec in_parts(StagesSpec stages, int parts);

// Entry of a list of StagesSpec; T{} for an empty list.
template <class T>
[[nodiscard]] T of_stage(const std::vector<T>& list, std::size_t stage) {
  if (list.empty()) return T{};
  return list.size() == 1 ? list.front() : list.at(stage);
}

using ModelSpec = std::variant<TransformerSpec, StagesSpec>;

// Parameters of the whole model, exact, multi-token prediction included. Tied embeddings count once; learned
// positions count max_sequence_length rows.
[[nodiscard]] std::int64_t parameter_count(const TransformerSpec& model);
// The parameters that one token meets: top_k of the routed experts, the router whole.
[[nodiscard]] std::int64_t active_parameter_count(const TransformerSpec& model);

}  // namespace stagecraft
