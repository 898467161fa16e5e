#include <fmt/format.h>

#include <array>
#include <initializer_list>

#include "base/text.hpp"
#include "formats/hf_import.hpp"

namespace stagecraft {

void HfImport::read_sizes() {
  add_word("family", is_llama() ? "llama" : "gpt", type_comment());
  add("layers", layers_ > 0 ? in_.integer({"num_hidden_layers", "n_layer"}) : std::nullopt);
  const auto hidden = in_.required({"hidden_size", "n_embd"});
  add("hidden", hidden);
  if (hidden) hidden_ = hidden->value;
}

namespace {

constexpr std::array<std::string_view, 3> kKvHeads = {"num_key_value_heads", kHfKvHeadAliases[0],
                                                      kHfKvHeadAliases[1]};

}  // namespace

std::optional<HfNumber> HfImport::read_kv_heads() {
  const YamlEntry* found = in_.first(kKvHeads);
  if (found == nullptr) return std::nullopt;
  const auto heads = in_.integer({std::string_view(found->key)});
  if (heads && found->key != kKvHeads.front())
    note_altered(*found, kKvHeads.front(), fmt::format("{} heads", heads->value));
  return heads;
}

// `of_type`: the number that the type gives where none of the keys stands; 0: it gives none.
std::optional<HfNumber> HfImport::required_or(std::initializer_list<std::string_view> keys,
                                              std::int64_t of_type) {
  if (of_type == 0 || in_.first(keys) != nullptr) return in_.required(keys);
  return HfNumber{.value = of_type, .key = absent(*keys.begin(), of_type), .where = in_.config().where};
}

void HfImport::read_heads() {
  const auto heads = required_or({"num_attention_heads", "n_head"}, architecture_.heads);
  add("heads", heads);
  if (architecture_.latent) {
    list_unread({"head_dim", "qk_head_dim"}, "heads behind the low ranks have sizes of their own");
    list_unread({"num_key_value_heads", kHfKvHeadAliases[0], kHfKvHeadAliases[1]},
                "each head has keys and values of its own behind the low rank");
    return;
  }
  const auto shared = architecture_.multi_query ? in_.flag("multi_query") : std::nullopt;
  const auto kv_heads = read_kv_heads();
  add("kv_heads", kv_heads);
  if (architecture_.multi_query && heads && (!shared || shared->value)) {
    add("kv_heads", fragment_number(1, shared ? shared->where : heads->where),
        shared ? "multi_query" : "multi_query is absent: true");
  } else if (!kv_heads && heads && (is_llama() || architecture_.kv_heads > 0) &&
             in_.first(kKvHeads) == nullptr) {
    const bool null = in_.is_null("num_key_value_heads");
    const std::int64_t own = null ? 0 : architecture_.kv_heads;
    add("kv_heads", fragment_number(own > 0 ? own : heads->value, heads->where),
        own > 0 ? fmt::format("num_key_value_heads is absent: {} of {}", own, model_type)
                : fmt::format("num_key_value_heads is {}: as many as heads", null ? "null" : "absent"));
  }
  if (architecture_.own_head_size) {
    add("head_size", in_.required({"head_dim"}));
  } else if (const auto head_size = in_.integer({"head_dim"})) {
    add("head_size", head_size);
  } else if (in_.first({"head_dim"}) == nullptr && architecture_.head_size > 0) {
    add("head_size", fragment_number(architecture_.head_size), absent("head_dim", architecture_.head_size));
  } else if (in_.first({"head_dim"}) == nullptr && heads && hidden_ > 0 && hidden_ % heads->value == 0) {
    add("head_size", fragment_number(hidden_ / heads->value, heads->where),
        "head_dim is absent: hidden over heads");
  }
}

// `use_mla: false` gives a type with latent attention the usual one.
void HfImport::read_latent_switch() {
  const auto latent = in_.flag("use_mla");
  if (!architecture_.latent || !latent || latent->value) return;
  architecture_.latent = false;
  list_unread({"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"},
              "of latent attention, which use_mla: false turns off");
}

void HfImport::read_latent_attention() {
  if (!architecture_.latent) return;
  Entries entries;
  const auto take = [&](const char* key, const std::optional<HfNumber>& number) {
    if (number) entries.push_back(number_entry(key, *number));
  };
  const YamlNode* query_rank = in_.config().find("q_lora_rank");
  if (in_.is_null("q_lora_rank")) {
    in_.mark("q_lora_rank");
    entries.push_back({.key = "query_rank",
                       .value = fragment_number(0, query_rank->where),
                       .comment = "q_lora_rank: null, queries are projected in one step"});
  } else {
    take("query_rank", in_.required({"q_lora_rank"}));
  }
  take("kv_rank", in_.required({"kv_lora_rank"}));
  take("nope_head_size", in_.required({"qk_nope_head_dim"}));
  take("rope_head_size", in_.required({"qk_rope_head_dim"}));
  take("value_head_size", in_.required({"v_head_dim"}));
  add_group("latent_attention", std::move(entries));
}

namespace {

// Is the length of the file the one after scaling? `factor` then says how far the slow waves are stretched.
//   source   Transformers modeling_rope_utils.py: _compute_llama3_parameters divides frequencies by the
//            factor, and _compute_longrope_parameters takes max_position_embeddings over the original for it.
bool states_scaled_length(const YamlNode& scaling) {
  for (const char* key : {"rope_type", "type"})
    if (const YamlNode* type = scaling.find(key))
      return type->text == "llama3" || type->text == "longrope" || type->text == "su";
  return false;
}

}  // namespace

// `factor` times the length of the training before it. Newer files have it in rope_parameters.
std::int64_t scaled_length(const YamlNode& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const YamlNode* scaling = config.find(key);
    if (scaling == nullptr || scaling->kind != YamlNode::Kind::kMap) continue;
    const YamlNode *factor = scaling->find("factor"),
                   *original = scaling->find("original_max_position_embeddings");
    if (factor == nullptr || original == nullptr) continue;
    if (states_scaled_length(*scaling)) continue;
    const auto times = parse_number(factor->text), length = parse_number(original->text);
    constexpr double kMost = 1e15;
    if (times && length && *times > 0 && *length > 0 && *times * *length < kMost)
      return static_cast<std::int64_t>(*times * *length);
  }
  return 0;
}

void HfImport::read_positions() {
  const bool learned = architecture_.shape == HfShape::kGpt2;
  if (learned) {
    const bool stated = in_.first({"n_positions", "max_position_embeddings"}) != nullptr;
    const auto most = stated ? in_.integer({"n_positions", "max_position_embeddings"})
                             : in_.required({"n_positions", "n_ctx", "max_position_embeddings"});
    add("max_sequence_length", most);
    // Of old files; no class of today reads it.
    if (const auto context = in_.integer({"n_ctx"});
        stated && context && most && context->value != most->value)
      in_.warning("n_ctx", "contradiction",
                  fmt::format("{}, and {} says {}, which counts", context->value, most->key, most->value));
  } else if (const auto ceiling = in_.integer({"max_position_embeddings", "n_positions"})) {
    const std::int64_t scaled = scaled_length(in_.config());
    if (scaled > ceiling->value)
      add("max_sequence_length", fragment_number(scaled, ceiling->where),
          "factor of rope_scaling times its original");
    else
      add("max_sequence_length", ceiling);
  }
  add_word("position", learned ? "learned" : "rope", type_comment());
  add_word("normalization", is_llama() ? "rmsnorm" : "layernorm", type_comment());
  if (!architecture_.norms.empty()) add_word("norms", architecture_.norms, type_comment());
}

void HfImport::read_activation() {
  const bool gpt2 = architecture_.shape == HfShape::kGpt2;  // its class reads the one, all others the other
  const bool gelu_gate = architecture_.gelu_gate;
  const std::string_view own = gpt2 ? "activation_function" : gelu_gate ? "hidden_activation" : "hidden_act";
  const std::string_view other = gpt2 || gelu_gate ? "hidden_act" : "activation_function";
  const bool has_own = in_.first({own}) != nullptr || gelu_gate;
  const auto written = in_.text({has_own ? own : other});
  if (has_own) list_unread({other}, fmt::format("{} says it", own));
  const std::string_view ours = gelu_gate ? "geglu" : is_llama() ? "swiglu" : "gelu";
  if (!written) {
    if (in_.first({has_own ? own : other}) != nullptr) return;  // wrong kind, already reported
    add_word("activation", ours, type_comment());
    assumed.push_back(fmt::format("{}, as {} has: {} is absent", ours, architecture_.model_type,
                                  gelu_gate ? own : "hidden_act"));
    return;
  }
  const std::string& name = written->value;
  const bool is_silu = is_llama() && !gelu_gate;
  const bool fits = is_silu ? name == "silu" || name == "swish" || name == "swiglu"
                            : name.starts_with("gelu") || name == "quick_gelu";
  if (fits)
    return add("activation", fragment_text(ours, written->where), fmt::format("{}: {}", written->key, name));
  in_.error(written->key, "not-supported-yet",
            fmt::format("{} in the feed-forward block of {} is not modelled", in_quotes(name), model_type),
            is_silu     ? "silu is: three matrices, one of them a gate"
            : gelu_gate ? "gelu is: three matrices, one of them a gate"
                        : "gelu is: two matrices");
}

// Linear layers with a bias. We support all, none, or only Q, K and V.
void HfImport::read_biases() {
  const auto attention = in_.flag("attention_bias");
  const auto mlp = in_.flag("mlp_bias");
  if (architecture_.qkv_bias) {  // whatever the other keys say
    const auto qkv = in_.flag("qkv_bias");
    add_flag("biases", false, type_comment());
    if (!qkv || qkv->value)
      add_flag("qkv_bias", true, qkv ? qkv->key : type_comment() + ", on Q, K and V without saying so");
    return list_unread({"attention_bias", "mlp_bias"}, "the type says where biases are");
  }
  const auto every = unknown_ || architecture_.use_bias ? in_.flag("use_bias") : std::nullopt;
  const auto qkv = unknown_ ? in_.flag({"qkv_bias", "use_qkv_bias", "add_qkv_bias"}) : std::nullopt;
  const auto output = in_.flag("attention_out_bias");
  const auto some = unknown_ ? in_.flag("bias") : std::nullopt;
  if (some && some->value && !every && !(attention && attention->value))
    return in_.error(
        "bias", "not-supported-yet", "does not say which linear layers have a bias",
        "attention_bias and mlp_bias do, use_bias says all of them, and qkv_bias Q, K and V alone");
  const bool wanted = every ? every->value : !is_llama() || architecture_.mlp_bias;
  const bool on_attention = attention ? attention->value : wanted || architecture_.attention_bias;
  const bool on_qkv = qkv ? qkv->value : on_attention;
  const bool on_output = output ? output->value : on_attention && !architecture_.attention_bias_spares_output;
  const bool on_mlp = is_llama() && mlp ? mlp->value : wanted;
  const std::string source = attention ? "attention_bias" : every ? "use_bias" : type_comment();
  if (on_qkv == on_output && on_output == on_mlp) return add_flag("biases", on_mlp, source);
  if (on_qkv && !on_output && !on_mlp) {
    add_flag("biases", false, type_comment());
    return add_flag("qkv_bias", true, qkv ? qkv->key : source);
  }
  in_.error(on_attention == wanted ? "mlp_bias" : "attention_bias", "not-supported-yet",
            on_attention ? "biases in attention and none in the feed-forward block are not modelled"
                         : "biases in the feed-forward block and none in attention are not modelled",
            "all linear layers have one, or none, or Q, K and V alone (qwen2)");
}

void HfImport::read_sinks() {
  if (architecture_.attention_sinks) add_flag("attention_sinks", true, type_comment());
}

void HfImport::read_clamp() {
  if (architecture_.clamped) add_flag("clamped_activation", true, type_comment());
}

void HfImport::read_qk_norm() {
  const auto said = in_.flag({"use_qk_norm", "qk_norm", "qk_layernorm"});
  if (architecture_.qk_norm) return add_flag("qk_norm", true, type_comment());
  if (architecture_.wide_qk_norm) return add_word("qk_norm", "width", type_comment());
  if (!said || !said->value) return;
  if (unknown_ || architecture_.optional_qk_norm) return add_flag("qk_norm", true, said->key);
  in_.warning(said->key, "not-modelled", fmt::format("{} has no norm of Q and K: not read", model_type));
}

// Element-wise operations beside others that are priced.
void HfImport::warn_of_unpriced() {
  if (in_.first({"attn_logit_softcapping"}) != nullptr)
    in_.warning("attn_logit_softcapping", "not-modelled",
                "the soft cap of the scores is not counted: attention that has one runs kernels of its own");
  if (in_.first({"final_logit_softcapping"}) != nullptr)
    in_.warning("final_logit_softcapping", "not-modelled",
                "the time of the tanh over the logits is not counted");
  if (in_.first({"clip_qkv"}) != nullptr)
    in_.warning("clip_qkv", "not-modelled", "the time of clipping Q, K and V is not counted");
}

void HfImport::read_ends() {
  const auto vocab = required_or({"vocab_size"}, architecture_.vocab);
  add("vocab", vocab);
  if (vocab) warn_of_other_head(vocab->value);
  if (const auto tied = in_.flag("tie_word_embeddings")) {
    add("tied_embeddings", fragment_flag(tied->value, tied->where), tied->key);
  } else if (in_.first({"tie_word_embeddings"}) == nullptr) {
    add_flag("tied_embeddings", architecture_.tied,
             unknown_ ? "tie_word_embeddings is absent" : type_comment());
    assumed.push_back(fmt::format("embedding and head {}, as in {}: tie_word_embeddings is absent",
                                  architecture_.tied ? "tied" : "not tied",
                                  unknown_ ? "PreTrainedConfig" : architecture_.model_type));
    if (unknown_)
      in_.warning("tie_word_embeddings", "assumed",
                  "is not given: embedding and head are one matrix then, unless the class of this type says "
                  "otherwise",
                  "add tie_word_embeddings");
  }
}

namespace {

// The rest is inside attention or behind the embedding.
bool is_behind_blocks(std::string_view key) {
  return key == "resid_pdrop" || key == "residual_dropout" || key == "hidden_dropout";
}

}  // namespace

void HfImport::read_dropout() {
  const bool gpt2 = architecture_.shape == HfShape::kGpt2;
  constexpr double kGpt2Default = 0.1;
  const std::initializer_list<std::string_view> gpt2_keys = {"resid_pdrop", "attn_pdrop", "embd_pdrop"};
  const std::initializer_list<std::string_view> other_keys = {
      "attention_dropout", "hidden_dropout", "residual_dropout", "embedding_dropout",
      "attn_pdrop",        "resid_pdrop",    "embd_pdrop"};
  std::string source, zero, elsewhere;
  for (const std::string_view key : gpt2 ? gpt2_keys : other_keys) {
    const auto share = in_.share(key);
    if (share && zero.empty()) zero = key;
    if ((share ? share->value : gpt2 ? kGpt2Default : 0) == 0) continue;
    std::string& first = is_behind_blocks(key) ? source : elsewhere;
    if (first.empty()) first = share ? share->key : fmt::format("{} is absent: {}", key, kGpt2Default);
  }
  if (!source.empty()) {
    add_flag("dropout", true, source);
    if (!gpt2) assumed.emplace_back("dropout inside attention and behind both blocks, since there is some");
  } else if (!elsewhere.empty()) {
    add_flag("dropout", false, fmt::format("none behind the blocks; {}", elsewhere));
    warn_of_other_dropout(elsewhere);
  } else {
    add_flag("dropout", false, zero.empty() ? type_comment() : zero);
  }
}

// `source`: a key, and what else was said of it.
void HfImport::warn_of_other_dropout(std::string_view source) {
  const std::string_view key = source.substr(0, source.find(' '));
  in_.warning(key, "not-modelled",
              key.starts_with("emb")
                  ? "dropout behind the embedding alone is not modelled"
                  : "dropout inside attention alone is not modelled: the model's is behind both "
                    "blocks as well");
}

// The dense block, and the experts in its place.
void HfImport::read_feed_forward() {
  std::optional<HfNumber> width;
  if (architecture_.shape == HfShape::kGpt2) {
    width = in_.integer({"n_inner", "intermediate_size"});
    if (!width && in_.first({"n_inner", "intermediate_size"}) == nullptr && hidden_ > 0)
      add("ffn_hidden", fragment_number(4 * hidden_), "n_inner is null or absent: 4 times hidden");
  } else {
    width = in_.required({"intermediate_size"});
  }
  add("ffn_hidden", width);
  if (architecture_.experts == HfExperts::kNone)
    refuse_experts();
  else
    read_experts(width);
  if (!is_llama()) return;
  const auto extra = in_.integer({"num_nextn_predict_layers", "mtp_num_hidden_layers"}, 0);
  if (extra && extra->value > 0) add("mtp_layers", extra);
}

}  // namespace stagecraft
