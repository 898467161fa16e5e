// Tables for Hugging Face's `config.json`: model types, names of keys, keys without effect.
//
//   source  configuration classes of huggingface/transformers @008e574
//           (src/transformers/models/*/configuration_*.py): names of keys, what an absent key means, which
//           linear layers have a bias. Facts only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// Structure of a layer, which decides the meaning of its keys.
enum class HfShape : std::uint8_t {
  kGpt2,   // learned positions, LayerNorm, two matrices with GELU, biases everywhere
  kNeox,   // the same with rotary positions
  kLlama,  // rotary positions, RMSNorm, three matrices with SiLU
};

enum class HfExperts : std::uint8_t { kNone, kMixtral, kQwen2, kQwen3, kDeepSeek };

// The layers whose attention is cut to `sliding_window` tokens, where `layer_types` does not say it.
enum class HfWindowed : std::uint8_t {
  kNone,            // the class reads no window
  kEvery,           // every layer
  kEven,            // layers 0, 2, 4 and so on
  kFromLimit,       // those from `max_window_layers` on
  kEvenBelowLimit,  // layers 0, 2, 4 and so on below `max_window_layers`
  kButEachNth       // all but each so-manyth, which `sliding_window_pattern` may say
};

struct HfWindow {
  HfWindowed layers = HfWindowed::kNone;
  bool switched = false;    // there is none but with `use_sliding_window: true`
  std::int64_t tokens = 0;  // when `sliding_window` is absent; 0: no window then
  std::int64_t each = 0;    // of kButEachNth
};

// `max_window_layers` when it is absent.
inline constexpr std::int64_t kHfWindowLimit = 28;

struct HfArchitecture {
  std::string_view model_type;
  std::string_view class_name;  // in `architectures`
  HfShape shape = HfShape::kLlama;
  HfExperts experts = HfExperts::kNone;
  HfWindow window = {};
  bool tied = false;                          // when `tie_word_embeddings` is absent
  bool qkv_bias = false;                      // on Q, K and V alone
  bool attention_bias_spares_output = false;  // `attention_bias` is of Q, K and V alone
  bool attention_bias = false;                // when `attention_bias` is absent
  bool qk_norm = false;                       // over each head of Q and K, always
  bool use_bias = false;                      // on all linear layers, unless `use_bias` is false
  bool mlp_bias = false;                      // on the feed-forward block and its experts
  bool router_bias = false;                   // on the router of experts
  bool attention_sinks = false;               // a learned score more in the softmax of each head
  bool clamped = false;                       // what goes into the activation
  bool multi_query = false;                   // one head of keys and values, unless `multi_query` is false
  bool optional_qk_norm = false;              // over each head of Q and K, where `use_qk_norm` says so
  bool latent = false;                        // multi-head latent attention
  bool own_head_size = false;                 // `head_dim` is required: hidden over heads would be wrong
  bool gelu_gate = false;        // three matrices with GELU in place of SiLU, `hidden_activation`
  bool wide_qk_norm = false;     // over all heads of Q and of K together, always
  std::string_view norms = {};   // of a layer, as `model.norms` has them; empty: before the blocks
  std::int64_t kv_heads = 0;     // when `num_key_value_heads` is absent; 0: as many as heads
  std::int64_t first_dense = 0;  // when `first_k_dense_replace` is absent; 0: it is required
  std::int64_t heads = 0;      // when `num_attention_heads` is absent; 0: it is required, as are the next two
  std::int64_t head_size = 0;  // when `head_dim` is absent; 0: hidden over heads
  std::int64_t vocab = 0;      // when `vocab_size` is absent
};

[[nodiscard]] std::span<const HfArchitecture> hf_architectures();
// nullptr when there is none. The language model inside one of images has a type of its own: qwen3_vl_moe_text
// is qwen3_moe.
[[nodiscard]] const HfArchitecture* hf_architecture(std::string_view model_type);
[[nodiscard]] const HfArchitecture* hf_architecture_of_class(std::string_view class_name);
[[nodiscard]] std::vector<std::string> hf_model_types();
// The window of a type that is read as Llama, where its class is known to have one.
[[nodiscard]] HfWindow hf_window_of_unknown(std::string_view model_type);
// Does the class end in the head of a language model: LlamaForCausalLM, GPT2LMHeadModel? Others have the head
// of another task, LlamaForSequenceClassification, or none, MistralModel.
[[nodiscard]] bool has_language_head(std::string_view class_name);

// A key that means layers of a kind that is not modelled, whatever its value; null, false and 0 mean nothing.
struct HfRefusedKey {
  std::string_view key;
  std::string_view what;          // "state-space layers"
  std::string_view said_by = {};  // a key that says it in words that are read
};
[[nodiscard]] std::span<const HfRefusedKey> hf_refused_keys();

// Words in a key that say that it changes the layers. A type that is not known is read as Llama only without
// such keys: what they mean cannot be known.
struct HfShapeWord {
  std::string_view word;  // whole, between underscores
  std::string_view what;
};
// nullptr when there is none in `key`.
[[nodiscard]] const HfShapeWord* hf_shape_word(std::string_view key);

// Does an absent key change the layers by its default? One that is nearly its name is refused then: what it
// says would be without effect.
[[nodiscard]] bool hf_default_shapes(std::string_view key);

// Keys of the head of a task other than that of a language model.
[[nodiscard]] bool is_of_task_head(std::string_view key);

// Keys that change neither time nor memory, by reason.
struct HfFreeKeys {
  std::string_view reason;
  std::span<const std::string_view> keys;
};
[[nodiscard]] std::span<const HfFreeKeys> hf_free_keys();

// Every name for the number of routed experts, those of altered files included.
inline constexpr std::array<std::string_view, 5> kHfExpertCounts = {
    "num_experts", "num_local_experts", "n_routed_experts", "num_routed_experts", "moe_num_experts"};

// Names for `num_key_value_heads` in hand-written files and those of other programs.
inline constexpr std::array<std::string_view, 2> kHfKvHeadAliases = {"num_kv_heads", "n_kv_heads"};

}  // namespace stagecraft
