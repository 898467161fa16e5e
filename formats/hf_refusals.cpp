#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "formats/hf_import.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

bool means_nothing(const YamlNode& value) {
  if (value.kind == YamlNode::Kind::kNull) return true;
  if (value.kind == YamlNode::Kind::kScalar) return value.text == "false" || value.text == "0";
  return value.items.empty() && value.entries.empty();
}

// `use_cla: false` turns all of "cla" off.
bool is_switched_off(const YamlNode& config, const HfShapeWord& row) {
  const YamlNode* value = config.find("use_" + std::string(row.word));
  return value != nullptr && means_nothing(*value);
}

}  // namespace

// What says that this is no Llama: "it has num_local_experts", "it has no rms_norm_eps".
std::vector<std::string> HfImport::unlike_llama() const {
  std::vector<std::string> reasons, absent, extra;
  const auto given = [&](const char* key) {
    const YamlNode* value = in_.config().find(key);
    return value != nullptr && value->kind != YamlNode::Kind::kNull ? value : nullptr;
  };
  for (const char* key : {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size",
                          "vocab_size", "rms_norm_eps", "hidden_act"})
    if (given(key) == nullptr) absent.emplace_back(key);
  for (const std::string_view key : kHfExpertCounts)
    if (in_.config().find(key) != nullptr) extra.emplace_back(key);
  if (in_.config().find("kv_lora_rank") != nullptr) extra.emplace_back("kv_lora_rank");
  if (!absent.empty()) reasons.push_back("it has no " + join(absent, ", "));
  if (!extra.empty()) reasons.push_back("it has " + join(extra, ", "));
  if (const YamlNode* act = given("hidden_act"); act != nullptr && act->text != "silu")
    reasons.push_back(fmt::format("hidden_act is {} and not 'silu'", in_quotes(act->text)));
  if (extra.empty() && lower_case(model_type).find("moe") != std::string::npos)
    reasons.emplace_back("its name speaks of experts");
  return reasons;
}

// `layer_types`: false when it is not given. Reports any kind but full attention.
bool HfImport::refuse_layer_types() {
  const auto types = in_.texts("layer_types");
  if (!types || types->value.empty()) return false;
  const auto named = static_cast<std::int64_t>(types->value.size());
  if (layers_ > 0 && named != layers_)
    in_.error("layer_types", "contradiction",
              fmt::format("names {} layers, and the model has {}", named, layers_),
              "one kind for each layer");
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
  constexpr std::int64_t kDefault = 4096;  // Mistral's and Qwen's
  const bool switched_on = architecture_.window == HfWindow::kWhenSwitchedOn && used.has_value();
  const bool by_default = absent && (architecture_.window == HfWindow::kUnlessNull || switched_on);
  if (!window && !by_default) return;
  const std::int64_t tokens = window ? window->value : kDefault;
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
  const std::string where = architecture_.model_type.empty() ? "layers that the file does not name"
                            : cut == layers                  ? "every layer"
                                                             : fmt::format("{} of {} layers", cut, layers);
  in_.error("sliding_window", "not-supported-yet",
            by_default
                ? fmt::format("is not given, and {} then means a window of {} tokens, which is not modelled",
                              model_type, tokens)
                : fmt::format("attention within {} tokens in {} is not modelled", tokens, where),
            "with sliding_window: null all tokens are attended to, which takes longer on long sequences");
}

// Refuses layers other than full attention with a feed-forward block.
void HfImport::refuse_other_layers() {
  if (const auto interval = in_.integer({"full_attention_interval"}); interval && interval->value > 1) {
    in_.error("full_attention_interval", "not-supported-yet",
              fmt::format("linear attention in {} of {} layers (full_attention_interval: {}) is not modelled",
                          layers_ - layers_ / interval->value, layers_, interval->value),
              "full attention in every layer is");
  }
  const bool has_pattern = architecture_.full_every > 0;  // read_window_pattern() reads it
  const std::size_t before = assumed.size();
  if (!has_pattern && !refuse_layer_types()) refuse_window();
  if (!has_pattern && assumed.size() == before)
    list_unread({"sliding_window", "use_sliding_window", "max_window_layers"}, "no window is in use");
  for (const HfRefusedKey& refused : hf_refused_keys()) {
    const YamlEntry* found = in_.first({refused.key});
    if (found == nullptr || means_nothing(found->value)) continue;
    if (has_pattern && refused.key == "sliding_window_pattern") continue;
    in_.error(refused.key, "not-supported-yet", fmt::format("{}: not modelled", refused.what),
              "a decoder whose layers are full attention and feed-forward is");
  }
}

// Of one layer, one pass and one expert nothing is special.
void HfImport::refuse_shape_words() {
  for (const YamlEntry& item : in_.config().entries) {
    const HfShapeWord* row = hf_shape_word(item.key);
    if (row == nullptr || in_.is_known(item.key) || means_nothing(item.value) || item.value.text == "1")
      continue;
    if (is_switched_off(in_.config(), *row)) continue;
    in_.error(item.key, "not-supported-yet",
              fmt::format("{} of a type that is not known here, {}: not modelled", row->what,
                          in_quotes(model_type)),
              "without the key it is read as llama");
  }
}

void HfImport::refuse_experts() {
  for (const std::string_view name : kHfExpertCounts) {
    const auto count = in_.integer({name}, 0);
    if (!count || count->value == 0) continue;
    in_.error(name, "contradiction", fmt::format("{} experts, and a {} has none", count->value, model_type),
              "is model_type right? mixtral, qwen2_moe, qwen3_moe, deepseek_v2 and deepseek_v3 have experts");
  }
}

}  // namespace stagecraft
