#include <fmt/format.h>

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

// Refuses layers other than attention with a feed-forward block.
void HfImport::refuse_other_layers() {
  if (const auto interval = in_.integer({"full_attention_interval"}); interval && interval->value > 1) {
    in_.error("full_attention_interval", "not-supported-yet",
              fmt::format("linear attention in {} of {} layers (full_attention_interval: {}) is not modelled",
                          layers_ - layers_ / interval->value, layers_, interval->value),
              "full attention in every layer is");
  }
  const bool reads_pattern = architecture_.window.layers == HfWindowed::kButEachNth;
  for (const HfRefusedKey& refused : hf_refused_keys()) {
    const YamlEntry* found = in_.first({refused.key});
    if (found == nullptr || means_nothing(found->value)) continue;
    if (reads_pattern && refused.key.ends_with("sliding_window_pattern")) continue;
    const YamlEntry* said_by = refused.said_by.empty() ? nullptr : in_.first({refused.said_by});
    if (said_by != nullptr && !means_nothing(said_by->value)) {
      list_unread({refused.key}, fmt::format("{} says it", refused.said_by));
      continue;
    }
    in_.error(refused.key, "not-supported-yet", fmt::format("{}: not modelled", refused.what),
              "a decoder whose layers are attention and feed-forward is");
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
              "is model_type right? mixtral, qwen2_moe, qwen3_moe, gpt_oss, deepseek_v2 and deepseek_v3 have "
              "experts");
  }
}

}  // namespace stagecraft
