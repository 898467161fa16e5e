#include "formats/hf_tables.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace stagecraft {

namespace {

// The default of Mistral's class and of Qwen's.
constexpr std::int64_t kUsualWindow = 4096;
constexpr HfWindow kWindowOfQwen{.layers = HfWindowed::kFromLimit, .switched = true, .tokens = kUsualWindow};

constexpr HfArchitecture kArchitectures[] = {
    {.model_type = "gpt2", .class_name = "GPT2LMHeadModel", .shape = HfShape::kGpt2, .tied = true},
    {.model_type = "gpt_bigcode",
     .class_name = "GPTBigCodeForCausalLM",
     .shape = HfShape::kGpt2,
     .tied = true,
     .multi_query = true},
    {.model_type = "gpt_neox", .class_name = "GPTNeoXForCausalLM", .shape = HfShape::kNeox},
    {.model_type = "starcoder2",
     .class_name = "Starcoder2ForCausalLM",
     .shape = HfShape::kNeox,
     .window = {.layers = HfWindowed::kEvery},
     .tied = true,
     .use_bias = true,
     .kv_heads = 2},
    {.model_type = "llama", .class_name = "LlamaForCausalLM"},
    {.model_type = "mistral",
     .class_name = "MistralForCausalLM",
     .window = {.layers = HfWindowed::kEvery, .tokens = kUsualWindow},
     .kv_heads = 8},
    {.model_type = "mixtral",
     .class_name = "MixtralForCausalLM",
     .experts = HfExperts::kMixtral,
     .window = {.layers = HfWindowed::kEvery},
     .kv_heads = 8},
    {.model_type = "qwen2", .class_name = "Qwen2ForCausalLM", .window = kWindowOfQwen, .qkv_bias = true},
    {.model_type = "qwen2_moe",
     .class_name = "Qwen2MoeForCausalLM",
     .experts = HfExperts::kQwen2,
     .window = {.layers = HfWindowed::kEvenBelowLimit, .switched = true, .tokens = kUsualWindow},
     .qkv_bias = true},
    {.model_type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .window = kWindowOfQwen,
     .qk_norm = true,
     .own_head_size = true},
    {.model_type = "qwen3_moe",
     .class_name = "Qwen3MoeForCausalLM",
     .experts = HfExperts::kQwen3,
     .window = {.layers = HfWindowed::kEvery, .switched = true, .tokens = kUsualWindow},
     .qk_norm = true,
     .kv_heads = 4},
    {.model_type = "glm",
     .class_name = "GlmForCausalLM",
     .attention_bias_spares_output = true,
     .attention_bias = true,
     .own_head_size = true,
     .kv_heads = 2},
    {.model_type = "glm4_moe",
     .class_name = "Glm4MoeForCausalLM",
     .experts = HfExperts::kDeepSeek,
     .attention_bias_spares_output = true,
     .optional_qk_norm = true,
     .own_head_size = true,
     .kv_heads = 8,
     .first_dense = 1},
    {.model_type = "glm4_moe_lite",
     .class_name = "Glm4MoeLiteForCausalLM",
     .experts = HfExperts::kDeepSeek,
     .latent = true,
     .first_dense = 1},
    {.model_type = "seed_oss",
     .class_name = "SeedOssForCausalLM",
     .attention_bias_spares_output = true,
     .attention_bias = true,
     .own_head_size = true,
     .kv_heads = 8},
    {.model_type = "mimo", .class_name = "MiMoForCausalLM", .window = kWindowOfQwen, .qkv_bias = true},
    {.model_type = "gpt_oss",
     .class_name = "GptOssForCausalLM",
     .experts = HfExperts::kMixtral,
     .window = {.layers = HfWindowed::kEven, .tokens = 128},
     .attention_bias = true,
     .mlp_bias = true,
     .router_bias = true,
     .attention_sinks = true,
     .clamped = true,
     .own_head_size = true,
     .kv_heads = 8},
    {.model_type = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .window = {.layers = HfWindowed::kButEachNth, .tokens = kUsualWindow, .each = 2},
     .tied = true,
     .gelu_gate = true,
     .norms = "both",
     .kv_heads = 4,
     .head_size = 256},
    {.model_type = "gemma3",
     .class_name = "Gemma3ForCausalLM",
     .window = {.layers = HfWindowed::kButEachNth, .tokens = kUsualWindow, .each = 6},
     .tied = true,
     .qk_norm = true,
     .gelu_gate = true,
     .norms = "both",
     .kv_heads = 4,
     .heads = 8,
     .head_size = 256,
     .vocab = 262'208},
    {.model_type = "olmo2", .class_name = "Olmo2ForCausalLM", .wide_qk_norm = true, .norms = "after"},
    {.model_type = "olmo3",
     .class_name = "Olmo3ForCausalLM",
     .window = {.layers = HfWindowed::kButEachNth, .tokens = kUsualWindow, .each = 4},
     .wide_qk_norm = true,
     .norms = "after"},
    {.model_type = "olmoe",
     .class_name = "OlmoeForCausalLM",
     .experts = HfExperts::kMixtral,
     .wide_qk_norm = true},
    {.model_type = "deepseek", .class_name = "DeepseekForCausalLM", .experts = HfExperts::kDeepSeek},
    {.model_type = "deepseek_v2",
     .class_name = "DeepseekV2ForCausalLM",
     .experts = HfExperts::kDeepSeek,
     .latent = true},
    {.model_type = "deepseek_v3",
     .class_name = "DeepseekV3ForCausalLM",
     .experts = HfExperts::kDeepSeek,
     .latent = true},
};

constexpr HfRefusedKey kRefusedKeys[] = {
    {"attn_layer_period", "state-space layers between attention layers"},
    {"attn_layer_indices", "state-space layers between attention layers"},
    {"hybrid_override_pattern", "layers of several kinds"},
    {"layers_block_type", "layers of several kinds"},
    {"block_types", "layers of several kinds"},
    {"per_layer_config", "layers that differ from each other"},
    {"ssm_cfg", "state-space layers"},
    {"state_size", "state-space layers"},
    {"mamba_d_state", "state-space layers"},
    {"attention_chunk_size", "attention within chunks"},
    {"sliding_window_pattern", "sliding windows in some of the layers", "layer_types"},
    {"_sliding_window_pattern", "sliding windows in some of the layers", "layer_types"},
    {"use_bidirectional_attention", "attention to later tokens"},
    {"index_topk", "sparse attention behind an indexer"},
    {"cross_attention_layers", "cross-attention"},
    {"add_cross_attention", "cross-attention"},
    {"is_encoder_decoder", "an encoder before the decoder"},
    {"pruned_heads", "heads that are left out of some layers"},
};

constexpr HfShapeWord kShapeWords[] = {
    {"expert", "experts"},
    {"experts", "experts"},
    {"moe", "experts"},
    {"per_layer", "layers that differ from each other"},
    {"cla", "keys and values that layers share"},
    {"loop", "layers that a token passes several times"},
    {"ut_steps", "layers that a token passes several times"},
    {"shared_head", "heads that share keys and values"},
};

constexpr std::string_view kDefaultShapes[] = {"num_key_value_heads",
                                               "head_dim",
                                               "tie_word_embeddings",
                                               "attention_bias",
                                               "attention_out_bias",
                                               "mlp_bias",
                                               "use_bias",
                                               "qkv_bias",
                                               "use_qk_norm",
                                               "sliding_window",
                                               "use_sliding_window",
                                               "max_window_layers",
                                               "layer_types",
                                               "num_nextn_predict_layers",
                                               "first_k_dense_replace",
                                               "moe_layer_freq",
                                               "decoder_sparse_step",
                                               "mlp_only_layers",
                                               "n_group",
                                               "topk_group"};

constexpr std::string_view kOrigin[] = {
    "architectures", "auto_map",   "transformers_version", "_name_or_path",   "name_or_path",
    "_commit_hash",  "model_name", "unsloth_fixed",        "unsloth_version", "_from_model_config"};
constexpr std::string_view kTokens[] = {
    "bos_token_id",        "eos_token_id",        "pad_token_id", "sep_token_id",
    "cls_token_id",        "mask_token_id",       "unk_token_id", "decoder_start_token_id",
    "forced_bos_token_id", "forced_eos_token_id", "prefix"};
constexpr std::string_view kRotation[] = {"rope_theta",
                                          "rope_scaling",
                                          "rope_parameters",
                                          "rope_interleave",
                                          "partial_rotary_factor",
                                          "rotary_pct",
                                          "rotary_emb_base",
                                          "original_max_position_embeddings",
                                          "initial_context_length",
                                          "rope_scaling_factor",
                                          "rope_ntk_alpha",
                                          "rope_ntk_beta",
                                          "rope_local_base_freq",
                                          "use_mrope"};
constexpr std::string_view kValues[] = {"initializer_range",
                                        "rms_norm_eps",
                                        "layer_norm_eps",
                                        "layer_norm_epsilon",
                                        "norm_epsilon",
                                        "query_pre_attn_scalar",
                                        "attention_softmax_in_fp32",
                                        "scale_attention_softmax_in_fp32",
                                        "routed_scaling_factor",
                                        "scale_attn_weights",
                                        "scale_attn_by_inverse_layer_idx",
                                        "swiglu_limit",
                                        "swiglu_alpha",
                                        "reorder_and_upcast_attn"};
constexpr std::string_view kRouter[] = {"aux_loss_alpha",     "seq_aux",      "router_aux_loss_coef",
                                        "norm_topk_prob",     "scoring_func", "output_router_logits",
                                        "router_jitter_noise"};
constexpr std::string_view kGeneration[] = {"use_cache",
                                            "do_sample",
                                            "temperature",
                                            "top_k",
                                            "top_p",
                                            "typical_p",
                                            "num_beams",
                                            "num_beam_groups",
                                            "max_length",
                                            "min_length",
                                            "early_stopping",
                                            "length_penalty",
                                            "repetition_penalty",
                                            "diversity_penalty",
                                            "no_repeat_ngram_size",
                                            "encoder_no_repeat_ngram_size",
                                            "bad_words_ids",
                                            "begin_suppress_tokens",
                                            "suppress_tokens",
                                            "exponential_decay_length_penalty",
                                            "num_return_sequences",
                                            "remove_invalid_values",
                                            "return_dict_in_generate",
                                            "output_scores",
                                            "task_specific_params",
                                            "cache_implementation"};
constexpr std::string_view kTaskHeads[] = {"id2label",     "label2id",        "num_labels",
                                           "problem_type", "finetuning_task", "classifier_dropout"};
constexpr std::string_view kTasks[] = {"summary_activation",
                                       "summary_first_dropout",
                                       "summary_proj_to_labels",
                                       "summary_type",
                                       "summary_use_proj",
                                       "is_decoder",
                                       "return_dict",
                                       "output_attentions",
                                       "output_hidden_states",
                                       "torchscript",
                                       "tie_encoder_decoder",
                                       "cross_attention_hidden_size",
                                       "chunk_size_feed_forward",
                                       "use_bfloat16",
                                       "tf_legacy_loss",
                                       "tokenizer_class"};
constexpr std::string_view kStored[] = {"quantization_config", "compression_config"};
constexpr std::string_view kSplit[] = {"pretraining_tp",
                                       "ep_size",
                                       "attn_implementation",
                                       "_attn_implementation",
                                       "_attn_implementation_autoset",
                                       "gradient_checkpointing"};

constexpr HfFreeKeys kFreeKeys[] = {
    {"what the file is and where it came from", kOrigin},
    {"numbers of tokens", kTokens},
    {"angles of the rotation", kRotation},
    {"values in formulas whose shape is fixed", kValues},
    {"of the router's loss and weights", kRouter},
    {"of generating text", kGeneration},
    {"of heads of other tasks", kTaskHeads},
    {"of other tasks, or of Python", kTasks},
    {"how stored weights are quantized: training.precision is yours to say", kStored},
    {"how another program split the work: parallelism and training.recompute are yours to say", kSplit},
};

// qwen3_vl_moe_text is qwen3_moe, and qwen2_5_vl has the layers of qwen2.
std::string language_type(std::string_view model_type) {
  std::string type;
  for (const std::string_view word : split(model_type, '_')) {
    if (word == "vl" || word == "text") continue;
    if (!type.empty()) type += '_';
    type += word;
  }
  return type == "qwen2_5" ? "qwen2" : type;
}

template <class Matches>
const HfArchitecture* find_architecture(Matches matches) {
  const auto* const found = std::ranges::find_if(kArchitectures, matches);
  return found == std::end(kArchitectures) ? nullptr : found;
}

}  // namespace

std::span<const HfArchitecture> hf_architectures() {
  return kArchitectures;
}

const HfArchitecture* hf_architecture(std::string_view model_type) {
  const std::string type = language_type(model_type);
  return find_architecture([&](const HfArchitecture& a) { return a.model_type == type; });
}

const HfArchitecture* hf_architecture_of_class(std::string_view class_name) {
  return find_architecture([&](const HfArchitecture& a) { return a.class_name == class_name; });
}

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names;
  for (const HfArchitecture& architecture : kArchitectures) names.emplace_back(architecture.model_type);
  return names;
}

HfWindow hf_window_of_unknown(std::string_view model_type) {
  if (model_type == "phi3") return {.layers = HfWindowed::kEvery};
  return {};
}

bool has_language_head(std::string_view class_name) {
  constexpr std::string_view kEnds[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return class_name.ends_with(end); });
}

const HfShapeWord* hf_shape_word(std::string_view key) {
  const std::string between = "_" + std::string(key) + "_";
  const auto* const found = std::ranges::find_if(kShapeWords, [&](const HfShapeWord& row) {
    return between.find("_" + std::string(row.word) + "_") != std::string::npos;
  });
  return found == std::end(kShapeWords) ? nullptr : found;
}

bool hf_default_shapes(std::string_view key) {
  return std::ranges::find(kDefaultShapes, key) != std::end(kDefaultShapes);
}

bool is_of_task_head(std::string_view key) {
  return std::ranges::find(kTaskHeads, key) != std::end(kTaskHeads);
}

std::span<const HfRefusedKey> hf_refused_keys() {
  return kRefusedKeys;
}

std::span<const HfFreeKeys> hf_free_keys() {
  return kFreeKeys;
}

}  // namespace stagecraft
