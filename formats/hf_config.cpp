#include "formats/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "formats/hf_reader.hpp"
#include "formats/hf_tables.hpp"

namespace stagecraft {

namespace {

using Number = HfValue<std::int64_t>;

// One file on its way from keys to a fragment.
class HfImport {
 public:
  HfImport(const YamlNode& config, const std::string& path, Diagnostics& diagnostics)
      : in_(config, path, diagnostics) {}

  // False after a mistake, reported.
  bool run();

  std::vector<FragmentEntry> model = {};
  std::vector<std::string> assumed = {};
  std::vector<std::string> ignored = {};
  std::string model_type = {};
  std::string training_hint = {};        // of sequence length and precision
  std::vector<Diagnostic> altered = {};  // warnings of keys of altered files; their hint comes later

 private:
  void add(std::string key, YamlNode value, std::string comment) {
    model.push_back({.key = std::move(key), .value = std::move(value), .comment = std::move(comment)});
  }
  void add(std::string key, const std::optional<Number>& number) {
    if (number) add(std::move(key), fragment_number(number->value, number->where), number->key);
  }
  void add_word(std::string key, std::string_view word, std::string comment) {
    add(std::move(key), fragment_text(word), std::move(comment));
  }
  void add_flag(std::string key, bool flag, std::string comment) {
    add(std::move(key), fragment_flag(flag), std::move(comment));
  }

  void add_group(std::string key, std::vector<FragmentEntry> entries) {
    if (entries.empty()) return;  // reported
    YamlNode place;               // of the group: where its first value stands
    place.where = entries.front().value.where;
    model.push_back({.key = std::move(key), .value = std::move(place), .entries = std::move(entries)});
  }

  const HfArchitecture* named_architecture();
  bool is_shaped_like_llama();
  bool accept_as_llama();
  void refuse_other_layers();
  bool refuse_layer_types();
  void refuse_window();
  void read_sizes();
  void read_heads();
  void read_positions();
  void read_activation();
  void read_biases();
  void read_ends();
  void read_dropout();
  void read_latent_attention();
  void read_feed_forward();
  void read_experts(const std::optional<Number>& width);
  void refuse_experts();
  std::optional<Number> expert_count();
  void add_shared_experts(std::vector<FragmentEntry>& entries);
  void add_dense_of_deepseek(std::vector<FragmentEntry>& entries);
  void add_dense_of_qwen(std::vector<FragmentEntry>& entries);
  void add_dense_list(std::vector<FragmentEntry>& entries, const std::vector<std::int64_t>& dense,
                      const std::string& comment, const SourceLocation& where);
  void note_routing();
  void note_the_rest();
  void warn_of_unknown_keys(const std::vector<std::string>& all_known);

  [[nodiscard]] bool is_llama() const { return architecture_.shape == HfShape::kLlama; }
  [[nodiscard]] std::string type_comment() const { return fmt::format("model_type: {}", model_type); }
  void note_altered(const YamlEntry& entry, std::string_view meant, const std::string& read);

  HfReader in_;
  HfArchitecture architecture_ = {};
  std::int64_t layers_ = 0;  // 0 here and below: not known, reported
  std::int64_t hidden_ = 0;
};

FragmentEntry entry(std::string key, const Number& number) {
  return {.key = std::move(key), .value = fragment_number(number.value, number.where), .comment = number.key};
}

bool means_nothing(const YamlNode& value) {
  if (value.kind == YamlNode::Kind::kScalar) return value.text == "false" || value.text == "0";
  return value.items.empty() && value.entries.empty();
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Llama's keys and nothing that says otherwise.
bool HfImport::is_shaped_like_llama() {
  for (const std::string_view key : {"num_hidden_layers", "hidden_size", "num_attention_heads",
                                     "intermediate_size", "vocab_size", "rms_norm_eps"})
    if (in_.config().find(key) == nullptr) return false;
  for (const std::string_view key : kHfExpertCounts)
    if (in_.config().find(key) != nullptr) return false;
  const YamlNode* act = in_.config().find("hidden_act");
  const bool latent = in_.config().find("kv_lora_rank") != nullptr;
  return !latent && act != nullptr && act->text == "silu" &&
         lower_case(model_type).find("moe") == std::string::npos;
}

// By `model_type`, else by the class in `architectures`, with a warning; nullptr when both are unknown.
const HfArchitecture* HfImport::named_architecture() {
  const auto type = in_.text({"model_type"});
  const auto classes = in_.texts("architectures");
  model_type = type ? type->value : "";
  if (const HfArchitecture* known = hf_architecture(model_type)) return known;
  const std::string class_name = classes && !classes->value.empty() ? classes->value.front() : "";
  const HfArchitecture* known = hf_architecture_of_class(class_name);
  if (known == nullptr) return nullptr;
  in_.warning("model_type", "unknown-model-type",
              type ? fmt::format("{} is not known here; read as {}, the class in architectures",
                                 in_quotes(model_type), known->model_type)
                   : fmt::format("is not given; read as {}, the class in architectures", known->model_type),
              "compare the parameter count with the published one");
  if (!type) model_type = known->model_type;
  return known;
}

// Of a type that is not known: read as Llama when its keys are, which is a warning; else an error.
bool HfImport::accept_as_llama() {
  const std::string what =
      model_type.empty() ? "is not given" : fmt::format("{} is not known here", in_quotes(model_type));
  if (!is_shaped_like_llama()) {
    in_.error("model_type", "unknown-model-type",
              fmt::format("{}, and its keys are not those of llama", what),
              "read are " + join(hf_model_types(), ", "));
    return false;
  }
  in_.warning("model_type", "unknown-model-type",
              fmt::format("{}; its keys are those of llama, and it is read as one", what),
              "compare the parameter count with the published one");
  assumed.push_back(fmt::format("layers as in llama: model_type {}", what));
  architecture_ = *hf_architecture("llama");
  if (model_type.empty()) model_type = "llama";
  return true;
}

// `layer_types`: false when it is not given. Reports any kind but full attention.
bool HfImport::refuse_layer_types() {
  const auto types = in_.texts("layer_types");
  if (!types || types->value.empty()) return false;
  std::map<std::string, std::size_t> counts;
  for (const std::string& type : types->value) {
    // "attention" is the old word for "full_attention".
    if (type != "full_attention" && type != "attention") ++counts[type];
  }
  for (const auto& [type, count] : counts) {
    in_.error(
        "layer_types", "not-supported-yet",
        fmt::format("{} in {} of {} layers is not modelled", in_quotes(type), count, types->value.size()),
        "full_attention in every layer is");
  }
  return true;
}

void HfImport::refuse_window() {
  const auto window = in_.integer({"sliding_window"}, 0);
  const auto used = in_.flag("use_sliding_window");
  const auto first = in_.integer({"max_window_layers"}, 0);
  const auto ceiling = in_.integer({"max_position_embeddings"});
  if (used && !used->value) return;
  const bool absent = !window && !in_.is_null("sliding_window");
  constexpr std::int64_t kMistralDefault = 4096;
  const bool by_default = absent && architecture_.window == HfWindow::kUnlessNull;
  if (!window && !by_default) return;
  const std::int64_t tokens = window ? window->value : kMistralDefault;
  if (tokens == 0) return;
  const std::int64_t layers = std::max<std::int64_t>(layers_, 0);
  std::int64_t cut = layers;
  if (architecture_.window == HfWindow::kWhenSwitchedOn) {
    if (!used) return;
    if (first) cut = std::max<std::int64_t>(0, layers - first->value);
    if (cut == 0) return;
  }
  if (ceiling && ceiling->value <= tokens) {
    assumed.push_back(
        fmt::format("a sliding window of {} tokens cuts nothing off: max_position_embeddings is {}", tokens,
                    ceiling->value));
    return;
  }
  const std::string where = cut == layers ? "every layer" : fmt::format("{} of {} layers", cut, layers);
  in_.error("sliding_window", "not-supported-yet",
            by_default
                ? fmt::format("is not given, and {} then means a window of {} tokens, which is not modelled",
                              model_type, tokens)
                : fmt::format("attention within {} tokens in {} is not modelled", tokens, where),
            "with sliding_window: null all tokens are attended to, which takes longer on long sequences");
}

// Everything that makes a layer something else than full attention and a feed-forward block.
void HfImport::refuse_other_layers() {
  if (const auto interval = in_.integer({"full_attention_interval"}); interval && interval->value > 1) {
    in_.error("full_attention_interval", "not-supported-yet",
              fmt::format("linear attention in {} of {} layers (full_attention_interval: {}) is not modelled",
                          layers_ - layers_ / interval->value, layers_, interval->value),
              "full attention in every layer is");
  }
  if (!refuse_layer_types()) refuse_window();
  for (const std::string_view key : {"sliding_window", "use_sliding_window", "max_window_layers"})
    in_.mark(key);
  for (const HfRefusedKey& refused : hf_refused_keys()) {
    const YamlEntry* found = in_.first({refused.key});
    if (found == nullptr || means_nothing(found->value)) continue;
    in_.error(refused.key, "not-supported-yet", fmt::format("{}: not modelled", refused.what),
              "a decoder whose layers are full attention and feed-forward is");
  }
}

void HfImport::read_sizes() {
  add_word("family", is_llama() ? "llama" : "gpt", type_comment());
  add("layers", layers_ > 0 ? in_.integer({"num_hidden_layers", "n_layer"}) : std::nullopt);
  const auto hidden = in_.required({"hidden_size", "n_embd"});
  add("hidden", hidden);
  if (hidden) hidden_ = hidden->value;
}

void HfImport::read_heads() {
  const auto heads = in_.required({"num_attention_heads", "n_head"});
  add("heads", heads);
  if (architecture_.latent) {
    in_.mark("head_dim");
    in_.mark("qk_head_dim");
    if (in_.first({"num_key_value_heads"}) != nullptr)
      ignored.emplace_back(
          "num_key_value_heads: each head has keys and values of its own behind the low rank");
    return;
  }
  const auto kv_heads = in_.integer({"num_key_value_heads"});
  add("kv_heads", kv_heads);
  if (!kv_heads && heads && is_llama() && in_.first({"num_key_value_heads"}) == nullptr)
    add("kv_heads", fragment_number(heads->value, heads->where),
        "num_key_value_heads is absent: as many as heads");
  if (architecture_.own_head_size) {
    add("head_size", in_.required({"head_dim"}));
  } else if (const auto head_size = in_.integer({"head_dim"})) {
    add("head_size", head_size);
  } else if (in_.first({"head_dim"}) == nullptr && heads && hidden_ > 0 && hidden_ % heads->value == 0) {
    add("head_size", fragment_number(hidden_ / heads->value, heads->where),
        "head_dim is absent: hidden over heads");
  }
}

void HfImport::read_latent_attention() {
  if (!architecture_.latent) return;
  std::vector<FragmentEntry> entries;
  const auto take = [&](const char* key, const std::optional<Number>& number) {
    if (number) entries.push_back(entry(key, *number));
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

void HfImport::read_positions() {
  const bool learned = architecture_.shape == HfShape::kGpt2;
  if (learned) {
    add("max_sequence_length", in_.required({"n_positions", "n_ctx", "max_position_embeddings"}));
  } else if (const auto ceiling = in_.integer({"max_position_embeddings", "n_positions"})) {
    add("max_sequence_length", ceiling);
  }
  add_word("position", learned ? "learned" : "rope", type_comment());
  add_word("normalization", is_llama() ? "rmsnorm" : "layernorm", type_comment());
}

void HfImport::read_activation() {
  const auto written = in_.text({"hidden_act", "activation_function"});
  const std::string_view ours = is_llama() ? "swiglu" : "gelu";
  if (!written) {
    if (in_.first({"hidden_act", "activation_function"}) != nullptr) return;  // of the wrong kind, reported
    add_word("activation", ours, type_comment());
    assumed.push_back(fmt::format("{}, as {} has: hidden_act is absent", ours, architecture_.model_type));
    return;
  }
  const std::string& name = written->value;
  const bool fits = is_llama() ? name == "silu" || name == "swish" || name == "swiglu"
                               : name.starts_with("gelu") || name == "quick_gelu";
  if (fits)
    return add("activation", fragment_text(ours, written->where), fmt::format("{}: {}", written->key, name));
  in_.error(written->key, "not-supported-yet",
            fmt::format("{} in the feed-forward block of {} is not modelled", in_quotes(name), model_type),
            is_llama() ? "silu is: three matrices, one of them a gate" : "gelu is: two matrices");
}

// Which linear layers have a bias. Ours: all, none, or those of Q, K and V alone.
void HfImport::read_biases() {
  const auto attention = in_.flag("attention_bias");
  const auto mlp = in_.flag("mlp_bias");
  const bool wanted = !is_llama();
  const std::string source = attention ? "attention_bias" : type_comment();
  if (architecture_.qkv_bias) {
    const auto qkv = in_.flag("qkv_bias");
    add_flag("biases", false, type_comment());
    if (!qkv || qkv->value)
      add_flag("qkv_bias", true, qkv ? qkv->key : type_comment() + ", on Q, K and V without saying so");
    return;
  }
  const bool on_attention = attention ? attention->value : wanted;
  const bool on_mlp = is_llama() ? mlp && mlp->value : true;
  if (on_attention == on_mlp) return add_flag("biases", on_mlp, source);
  in_.error(on_attention == wanted ? "mlp_bias" : "attention_bias", "not-supported-yet",
            on_attention ? "biases in attention and none in the feed-forward block are not modelled"
                         : "biases in the feed-forward block and none in attention are not modelled",
            "all linear layers have one, or none, or Q, K and V alone (qwen2)");
}

void HfImport::read_ends() {
  add("vocab", in_.required({"vocab_size"}));
  if (const auto tied = in_.flag("tie_word_embeddings")) {
    add("tied_embeddings", fragment_flag(tied->value, tied->where), tied->key);
  } else if (in_.first({"tie_word_embeddings"}) == nullptr) {
    add_flag("tied_embeddings", architecture_.tied, type_comment());
    assumed.push_back(fmt::format("embedding and head {}, as in {}: tie_word_embeddings is absent",
                                  architecture_.tied ? "tied" : "not tied", architecture_.model_type));
  }
}

void HfImport::read_dropout() {
  const bool gpt2 = architecture_.shape == HfShape::kGpt2;
  constexpr double kGpt2Default = 0.1;
  const std::initializer_list<std::string_view> gpt2_keys = {"resid_pdrop", "attn_pdrop", "embd_pdrop"};
  const std::initializer_list<std::string_view> other_keys = {"attention_dropout", "hidden_dropout"};
  std::string source, zero;
  for (const std::string_view key : gpt2 ? gpt2_keys : other_keys) {
    const auto share = in_.share(key);
    if (share && zero.empty()) zero = key;
    if ((share ? share->value : gpt2 ? kGpt2Default : 0) > 0 && source.empty())
      source = share ? share->key : fmt::format("{} is absent: {}", key, kGpt2Default);
  }
  if (!source.empty()) {
    add_flag("dropout", true, source);
    if (!gpt2) assumed.emplace_back("dropout inside attention and behind both blocks, since there is some");
  } else {
    add_flag("dropout", false, zero.empty() ? type_comment() : zero);
  }
}

void HfImport::note_altered(const YamlEntry& entry, std::string_view meant, const std::string& read) {
  altered.push_back({.code = "altered-key",
                     .where = entry.where,
                     .path = in_.path_of(entry.key),
                     .message = fmt::format("not a key of {}, read as '{}' ({})", model_type, meant, read)});
  assumed.push_back(fmt::format("{} means {}: the file was altered", entry.key, meant));
}

// The routed experts, under whichever name.
std::optional<Number> HfImport::expert_count() {
  constexpr std::array<std::string_view, 2> kMixtral = {"num_local_experts", "num_experts"};
  constexpr std::array<std::string_view, 2> kQwen = {"num_experts", "num_local_experts"};
  constexpr std::array<std::string_view, 3> kDeepSeek = {"n_routed_experts", "num_local_experts",
                                                         "num_experts"};
  std::span<const std::string_view> own = kQwen;
  if (architecture_.experts == HfExperts::kMixtral) own = kMixtral;
  if (architecture_.experts == HfExperts::kDeepSeek) own = kDeepSeek;
  const YamlEntry* found = in_.first(own);
  const bool altered_key = found == nullptr;
  if (altered_key) found = in_.first(kHfExpertCounts);
  if (found == nullptr) {
    in_.error(own.front(), "missing-key",
              fmt::format("is required: {} has experts, and their number is not given", model_type),
              "without experts the model_type is another one");
    return std::nullopt;
  }
  const auto count = in_.integer({std::string_view(found->key)});
  if (!count) return std::nullopt;
  if (altered_key) note_altered(*found, own.front(), fmt::format("{} experts", count->value));
  for (const std::string_view name : kHfExpertCounts) {
    const auto other = in_.integer({name});
    if (other && other->value != count->value)
      in_.error(name, "contradiction",
                fmt::format("{} experts, and {} says {}", other->value, count->key, count->value),
                "keep one of the two");
  }
  return count;
}

void HfImport::add_shared_experts(std::vector<FragmentEntry>& entries) {
  if (architecture_.experts == HfExperts::kQwen2) {
    const auto width = in_.required({"shared_expert_intermediate_size"}, 0);
    if (!width || width->value == 0) return;
    entries.push_back(
        {.key = "shared", .value = fragment_number(1, width->where), .comment = type_comment()});
    entries.push_back(entry("shared_ffn_hidden", *width));
    entries.push_back({.key = "shared_gate", .value = fragment_flag(true), .comment = type_comment()});
    return;
  }
  if (architecture_.experts != HfExperts::kDeepSeek) return;
  if (in_.is_null("n_shared_experts")) return in_.mark("n_shared_experts");
  const YamlEntry* own = in_.first({"n_shared_experts"});
  const YamlEntry* other = in_.first({"num_shared_experts"});
  const bool altered_key = own == nullptr && other != nullptr;
  const auto shared =
      altered_key ? in_.integer({"num_shared_experts"}, 0) : in_.required({"n_shared_experts"}, 0);
  if (!shared) return;
  entries.push_back(entry("shared", *shared));
  if (altered_key) note_altered(*other, "n_shared_experts", fmt::format("{} shared", shared->value));
}

void HfImport::add_dense_list(std::vector<FragmentEntry>& entries, const std::vector<std::int64_t>& dense,
                              const std::string& comment, const SourceLocation& where) {
  if (dense.empty()) return;
  if (static_cast<std::int64_t>(dense.size()) >= layers_)
    return in_.error("num_hidden_layers", "contradiction", "no layer is left with experts",
                     "a model without experts has another model_type");
  entries.push_back({.key = "dense_layers", .value = fragment_numbers(dense, where), .comment = comment});
}

// Layer i has experts from the first k on, if i mod frequency = 0.
void HfImport::add_dense_of_deepseek(std::vector<FragmentEntry>& entries) {
  const auto first = in_.required({"first_k_dense_replace"}, 0);
  const auto frequency = in_.integer({"moe_layer_freq"});
  if (!first || layers_ == 0) return;
  if (first->value >= layers_)
    return in_.error(
        "first_k_dense_replace", "contradiction",
        fmt::format("{} dense layers of {}: no layer is left with experts", first->value, layers_),
        "a model without experts has another model_type");
  if (!frequency || frequency->value == 1) {
    entries.push_back(entry("first_dense_layers", *first));
    return;
  }
  std::vector<std::int64_t> dense;
  for (std::int64_t layer = 0; layer < layers_; ++layer)
    if (layer < first->value || layer % frequency->value != 0) dense.push_back(layer);
  add_dense_list(entries, dense, "first_k_dense_replace, moe_layer_freq", frequency->where);
}

// Layer i has experts if (i + 1) mod step = 0 and it is not listed.
void HfImport::add_dense_of_qwen(std::vector<FragmentEntry>& entries) {
  const auto step = in_.integer({"decoder_sparse_step"});
  const auto only = in_.integers("mlp_only_layers");
  std::set<std::int64_t> dense;
  for (const std::int64_t layer : only ? only->value : std::vector<std::int64_t>{}) {
    dense.insert(layer);
    if (layer >= layers_ && layers_ > 0)
      in_.error("mlp_only_layers", "out-of-range",
                fmt::format("layer {} is behind the last of {}", layer, layers_), "layers count from 0");
  }
  for (std::int64_t layer = 0; step && layer < layers_; ++layer)
    if ((layer + 1) % step->value != 0) dense.insert(layer);
  const SourceLocation where = only && !only->value.empty() ? only->where
                               : step                       ? step->where
                                                            : SourceLocation{};
  add_dense_list(entries, {dense.begin(), dense.end()}, "decoder_sparse_step, mlp_only_layers", where);
}

void HfImport::refuse_experts() {
  for (const std::string_view name : kHfExpertCounts) {
    const auto count = in_.integer({name}, 0);
    if (!count || count->value == 0) continue;
    in_.error(name, "contradiction", fmt::format("{} experts, and a {} has none", count->value, model_type),
              "is model_type right? mixtral, qwen2_moe, qwen3_moe, deepseek_v2 and deepseek_v3 have experts");
  }
}

// The dense block, and the experts in its place.
void HfImport::read_feed_forward() {
  std::optional<Number> width;
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

// `width` is that of the dense block, or what the file calls so: Mixtral has none, and means an expert's.
void HfImport::read_experts(const std::optional<Number>& width) {
  constexpr std::int64_t kMostLayers = 100'000;
  if (layers_ > kMostLayers)
    return in_.error("num_hidden_layers", "out-of-range",
                     fmt::format("{} layers with experts are more than {}", layers_, kMostLayers));
  std::vector<FragmentEntry> entries;
  if (const auto count = expert_count()) entries.push_back(entry("count", *count));
  if (const auto top_k = in_.required({"num_experts_per_tok"})) entries.push_back(entry("top_k", *top_k));
  const bool mixtral = architecture_.experts == HfExperts::kMixtral;
  const auto own_width = mixtral ? width : in_.required({"moe_intermediate_size"});
  if (own_width) entries.push_back(entry("ffn_hidden", *own_width));
  add_shared_experts(entries);
  if (architecture_.experts == HfExperts::kDeepSeek)
    add_dense_of_deepseek(entries);
  else if (!mixtral)
    add_dense_of_qwen(entries);
  add_group("experts", std::move(entries));
  note_routing();
}

// What of the routing is not modelled, and could be missed.
void HfImport::note_routing() {
  const auto groups = in_.integer({"n_group"}, 0);
  const auto chosen = in_.integer({"topk_group"}, 0);
  const auto method = in_.text({"topk_method"});
  if (groups && chosen && chosen->value < groups->value)
    assumed.push_back(
        fmt::format("a token may go to any expert: the limit to {} of {} groups (topk_group, n_group) "
                    "would save messages between nodes",
                    chosen->value, groups->value));
  if (method && method->value == "noaux_tc")
    assumed.emplace_back(
        "the router's correction of loads (one number an expert) is a buffer, not a parameter");
}

void HfImport::note_the_rest() {
  if (const auto parallel = in_.flag("use_parallel_residual");
      architecture_.shape == HfShape::kNeox && !(parallel && !parallel->value))
    assumed.emplace_back(
        "attention and feed-forward block one after the other: the parallel residual would save a "
        "reduction between tensor ranks in each layer");
  const auto precision = in_.text({"dtype", "torch_dtype"});
  in_.mark("torch_dtype");
  if (precision) training_hint = fmt::format("the weights are stored as {}", in_quotes(precision->value));
  std::vector<std::string> all_known(in_.known().begin(), in_.known().end());
  for (const HfFreeKeys& group : hf_free_keys()) {
    std::vector<std::string> found;
    for (const YamlEntry& item : in_.config().entries) {
      if (std::ranges::find(group.keys, std::string_view(item.key)) == group.keys.end()) continue;
      if (item.key != "architectures") found.push_back(item.key);
      in_.mark(item.key);
    }
    for (const std::string_view key : group.keys) all_known.emplace_back(key);
    if (!found.empty()) ignored.push_back(fmt::format("{}: {}", join(found, ", "), group.reason));
  }
  warn_of_unknown_keys(all_known);
}

void HfImport::warn_of_unknown_keys(const std::vector<std::string>& all_known) {
  constexpr std::size_t kMost = 20;  // warnings: nobody reads more
  std::vector<std::string> unknown;
  for (const YamlEntry& item : in_.config().entries) {
    if (in_.is_known(item.key) || item.value.kind == YamlNode::Kind::kNull) continue;
    unknown.push_back(item.key);
    if (unknown.size() > kMost) continue;
    in_.diagnostics().warning({.code = "unknown-key",
                               .where = item.where,
                               .path = in_.path_of(item.key),
                               .message = "is not known here, and was not read",
                               .hint = suggest(item.key, all_known)});
  }
  if (unknown.empty()) return;
  if (unknown.size() > kMost) unknown.resize(kMost);
  assumed.push_back(fmt::format("no effect of what is not known here: {}", join(unknown, ", ")));
}

// False after a mistake. All keys are read before anything is said to be right.
bool HfImport::run() {
  const std::size_t before = in_.diagnostics().error_count();
  if (const auto layers = in_.required({"num_hidden_layers", "n_layer"})) layers_ = layers->value;
  const HfArchitecture* known = named_architecture();
  if (known != nullptr) architecture_ = *known;
  const std::size_t before_layers = in_.diagnostics().error_count();
  refuse_other_layers();
  if (known == nullptr) {
    // Layers that are refused by name belong to types that are not known: one message is enough.
    if (in_.diagnostics().error_count() != before_layers || !accept_as_llama()) return false;
  }
  read_sizes();
  read_heads();
  read_feed_forward();
  read_latent_attention();
  read_ends();
  read_positions();
  read_activation();
  read_biases();
  if (architecture_.qk_norm) add_flag("qk_norm", true, type_comment());
  read_dropout();
  note_the_rest();
  return in_.diagnostics().error_count() == before;
}

// The language model of a model of several parts; the keys that its outer mapping holds for all are put into
// it.
struct LanguageModel {
  YamlNode config;
  std::string path;
};

std::optional<LanguageModel> language_model(const YamlNode& root, Diagnostics& diagnostics,
                                            std::vector<std::string>& assumed) {
  for (const std::string_view name : {"text_config", "llm_config", "language_config"}) {
    const YamlNode* inner = root.find(name);
    if (inner == nullptr || inner->kind != YamlNode::Kind::kMap) continue;
    if (root.find("num_hidden_layers") != nullptr || root.find("n_layer") != nullptr) continue;
    LanguageModel found{.config = *inner, .path = std::string(name)};
    for (const std::string_view shared : {"tie_word_embeddings", "dtype", "torch_dtype"}) {
      const auto entry = std::ranges::find(root.entries, shared, &YamlEntry::key);
      if (entry != root.entries.end() && inner->find(shared) == nullptr)
        found.config.entries.push_back(*entry);
    }
    assumed.push_back(fmt::format("only {} was read, the language model", name));
    for (const YamlEntry& entry : root.entries) {
      if (entry.key == name || entry.value.kind != YamlNode::Kind::kMap || !entry.key.ends_with("_config"))
        continue;
      if (entry.key == "quantization_config") continue;
      diagnostics.warning(
          {.code = "not-modelled",
           .where = entry.where,
           .path = entry.key,
           .message = "a part beside the language model: neither its time nor its memory is counted",
           .hint = {}});
    }
    return found;
  }
  return std::nullopt;
}

// "deepseek_v3: 671,026,404,352 parameters, 37,552,282,624 of them active per token"
std::vector<std::string> title(const std::string& name, const TransformerSpec& model) {
  TransformerSpec main = model;
  main.mtp_layers = 0;
  const std::int64_t count = parameter_count(main);
  std::string line = fmt::format("{}: {} parameters", name, with_thousands(count));
  if (model.experts)
    line += fmt::format(", {} of them active per token", with_thousands(active_parameter_count(main)));
  std::vector<std::string> lines = {line};
  if (model.mtp_layers > 0)
    lines.push_back(fmt::format("and {} for multi-token prediction (mtp_layers: 0 leaves it out)",
                                with_thousands(parameter_count(model) - count)));
  lines.emplace_back(
      "A scenario once what is missing is added, or a model as it is: `model: ./THIS-FILE.yaml`.");
  return lines;
}

std::vector<std::string> missing_parts(const TransformerSpec& model, const std::string& stored_as) {
  std::string training =
      "training: {global_batch_size: …, micro_batch_size: …, sequence_length: …, precision: …}";
  std::vector<std::string> notes;
  if (model.max_sequence_length > 0)
    notes.push_back(fmt::format("at most {} tokens", model.max_sequence_length));
  if (!stored_as.empty()) notes.push_back(stored_as);
  if (!notes.empty()) training += "  # " + join(notes, "; ");
  return {"cluster: {node: …, nodes: …}", "parallelism: {tensor: …, pipeline: …}", training};
}

std::optional<TransformerSpec> checked_model(const std::vector<FragmentEntry>& entries,
                                             const SourceLocation& where, Diagnostics& diagnostics,
                                             Origins* origins) {
  const std::size_t before = diagnostics.error_count();
  const YamlNode tree = to_tree(entries, where);
  YamlMap map(&tree, "model", where, diagnostics, origins);
  ModelSpec spec = load_model(map);
  if (diagnostics.error_count() != before) return std::nullopt;
  SC_CHECK(std::holds_alternative<TransformerSpec>(spec), "a family of an imported model is no transformer");
  return std::get<TransformerSpec>(std::move(spec));
}

}  // namespace

std::optional<HfConfig> read_hf_config(std::string_view text, const std::string& name,
                                       Diagnostics& diagnostics, Origins* origins) {
  const std::optional<YamlNode> root = parse_json(text, name, diagnostics);
  if (!root) return std::nullopt;
  if (root->kind != YamlNode::Kind::kMap) {
    diagnostics.error({.code = "not-a-mapping",
                       .where = root->where,
                       .message = "this is no config.json: it holds no object",
                       .hint = {}});
    return std::nullopt;
  }
  std::vector<std::string> assumed;
  const auto inner = language_model(*root, diagnostics, assumed);
  const YamlNode& config = inner ? inner->config : *root;
  HfImport import(config, inner ? inner->path : "", diagnostics);
  const bool ok = import.run();
  std::optional<TransformerSpec> model;
  if (ok) model = checked_model(import.model, config.where, diagnostics, origins);
  std::string count;
  if (model) {
    model->name = import.model_type;
    TransformerSpec main = *model;
    main.mtp_layers = 0;
    count = human_count(parameter_count(main));
  }
  for (Diagnostic& warning : import.altered) {
    warning.hint = "the file was altered" + (model ? "; compare the parameter count, " + count : "");
    diagnostics.warning(std::move(warning));
  }
  if (!model) return std::nullopt;

  std::vector<FragmentEntry> entries = {{.key = "name",
                                         .value = fragment_text(import.model_type),
                                         .comment = fmt::format("model_type; {} parameters", count)}};
  entries.insert(entries.end(), import.model.begin(), import.model.end());
  assumed.insert(assumed.end(), import.assumed.begin(), import.assumed.end());
  Fragment fragment{.head = title(import.model_type, *model),
                    .entries = {{.key = "stagecraft", .value = fragment_number(1), .comment = {}},
                                {.key = "model", .value = {}, .comment = {}, .entries = std::move(entries)}},
                    .assumed = std::move(assumed),
                    .ignored = std::move(import.ignored),
                    .missing = missing_parts(*model, import.training_hint)};
  return HfConfig{.fragment = std::move(fragment), .model = *std::move(model)};
}

}  // namespace stagecraft
