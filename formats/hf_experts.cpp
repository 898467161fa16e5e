#include <fmt/format.h>

#include <array>
#include <set>
#include <span>

#include "formats/hf_import.hpp"

namespace stagecraft {

// The routed experts, under whichever name.
std::optional<HfNumber> HfImport::expert_count() {
  constexpr std::array<std::string_view, 2> kMixtral = {"num_local_experts", "num_experts"};
  constexpr std::array<std::string_view, 2> kQwen = {"num_experts", "num_local_experts"};
  constexpr std::array<std::string_view, 3> kDeepSeek = {"n_routed_experts", "num_local_experts",
                                                         "num_experts"};
  std::span<const std::string_view> own = kQwen;
  if (architecture_.experts == HfExperts::kMixtral) own = kMixtral;
  if (architecture_.experts == HfExperts::kDeepSeek) own = kDeepSeek;
  const YamlEntry* found = in_.first(own);
  const YamlEntry* of_any_name = in_.first(kHfExpertCounts);
  const bool altered_key = found == nullptr;
  if (altered_key) found = of_any_name;
  if (found == nullptr) {
    in_.error(own.front(), "missing-key",
              fmt::format("is required: {} has experts, and their number is not given", model_type),
              "without experts the model_type is another one");
    return std::nullopt;
  }
  const auto count = in_.integer({std::string_view(found->key)});
  if (!count) return std::nullopt;
  if (altered_key) note_altered(*found, own.front(), fmt::format("{} experts", count->value));
  return count;
}

// gpt-oss has it under the name of its own program, too.
std::optional<HfNumber> HfImport::read_top_k() {
  if (architecture_.model_type == "gpt_oss")
    return in_.required({"num_experts_per_tok", "experts_per_token"});
  return in_.required({"num_experts_per_tok"});
}

void HfImport::add_shared_experts(Entries& entries) {
  if (architecture_.experts == HfExperts::kQwen2) {
    const auto width = in_.required({"shared_expert_intermediate_size"}, 0);
    if (!width || width->value == 0) return;
    entries.push_back(
        {.key = "shared", .value = fragment_number(1, width->where), .comment = type_comment()});
    entries.push_back(number_entry("shared_ffn_hidden", *width));
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
  entries.push_back(number_entry("shared", *shared));
  if (altered_key) note_altered(*other, "n_shared_experts", fmt::format("{} shared", shared->value));
}

void HfImport::add_dense_list(Entries& entries, const std::vector<std::int64_t>& dense,
                              const std::string& comment, const SourceLocation& where) {
  if (dense.empty()) return;
  if (static_cast<std::int64_t>(dense.size()) >= layers_)
    return in_.error("num_hidden_layers", "contradiction", "no layer is left with experts",
                     "a model without experts has another model_type");
  entries.push_back({.key = "dense_layers", .value = fragment_numbers(dense, where), .comment = comment});
}

// `mlp_layer_types`: "dense" or "sparse" for each layer.
void HfImport::add_dense_of_kinds(Entries& entries, const HfValue<std::vector<std::string>>& kinds) {
  const auto named = static_cast<std::int64_t>(kinds.value.size());
  if (layers_ > 0 && named != layers_)
    return in_.error("mlp_layer_types", "contradiction",
                     fmt::format("names {} layers, and the model has {}", named, layers_),
                     "one kind for each layer");
  std::vector<std::int64_t> dense;
  for (std::int64_t layer = 0; layer < named; ++layer) {
    const std::string& kind = kinds.value[static_cast<std::size_t>(layer)];
    if (kind == "dense") dense.push_back(layer);
    if (kind != "dense" && kind != "sparse")
      return in_.error("mlp_layer_types", "unknown-name",
                       fmt::format("{} is neither dense nor sparse", in_quotes(kind)));
  }
  add_dense_list(entries, dense, kinds.key, kinds.where);
}

// Layer i has experts from the first k on, if i mod frequency = 0.
void HfImport::add_dense_of_deepseek(Entries& entries) {
  const auto kinds = in_.texts("mlp_layer_types");
  const std::int64_t own = architecture_.first_dense;
  const auto first = own > 0 || kinds ? in_.integer({"first_k_dense_replace"}, 0)
                                      : in_.required({"first_k_dense_replace"}, 0);
  const auto frequency = in_.integer({"moe_layer_freq"});
  if (kinds) return add_dense_of_kinds(entries, *kinds);
  if (!first && own > 0 && in_.first({"first_k_dense_replace"}) == nullptr) {
    entries.push_back({.key = "first_dense_layers",
                       .value = fragment_number(own),
                       .comment = fmt::format("first_k_dense_replace is absent: {} of {}", own, model_type)});
    return;
  }
  if (!first || layers_ == 0) return;
  if (first->value >= layers_)
    return in_.error(
        "first_k_dense_replace", "contradiction",
        fmt::format("{} dense layers of {}: no layer is left with experts", first->value, layers_),
        "a model without experts has another model_type");
  if (!frequency || frequency->value == 1) {
    entries.push_back(number_entry("first_dense_layers", *first));
    return;
  }
  std::vector<std::int64_t> dense;
  for (std::int64_t layer = 0; layer < layers_; ++layer)
    if (layer < first->value || layer % frequency->value != 0) dense.push_back(layer);
  add_dense_list(entries, dense, "first_k_dense_replace, moe_layer_freq", frequency->where);
}

// Layer i has experts if (i + 1) mod step = 0 and it is not listed.
void HfImport::add_dense_of_qwen(Entries& entries) {
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

// Groups limit a token's choice under every method but `greedy`.
void HfImport::add_routing_groups(Entries& entries) {
  const auto groups = in_.integer({"n_group"}, 0);
  const auto chosen = in_.integer({"topk_group"}, 0);
  const auto method = in_.text({"topk_method"});
  if ((groups && groups->value <= 1) || (method && method->value == "greedy")) return;
  const bool has_groups = in_.first({"n_group"}) != nullptr,
             has_chosen = in_.first({"topk_group"}) != nullptr;
  if (has_groups != has_chosen)
    in_.error(has_groups ? "topk_group" : "n_group", "missing-key",
              fmt::format("is required beside {}", has_groups ? "n_group" : "topk_group"),
              "give both, or n_group: 1 where no group limits a token");
  if (!groups || !chosen) return;
  entries.push_back(number_entry("groups", *groups));
  entries.push_back(number_entry("top_groups", *chosen));
}

// `width` is the file's width of the dense block. Mixtral has no dense block, and there it is an expert's.
void HfImport::read_experts(const std::optional<HfNumber>& width) {
  if (layers_ > kMostHfLayers)
    return in_.error("num_hidden_layers", "out-of-range",
                     fmt::format("{} layers with experts are more than {}", layers_, kMostHfLayers));
  Entries entries;
  if (const auto count = expert_count()) entries.push_back(number_entry("count", *count));
  if (const auto top_k = read_top_k()) entries.push_back(number_entry("top_k", *top_k));
  const bool mixtral = architecture_.experts == HfExperts::kMixtral;
  const auto own_width = mixtral ? width : in_.required({"moe_intermediate_size"});
  if (own_width) entries.push_back(number_entry("ffn_hidden", *own_width));
  if (architecture_.router_bias)
    entries.push_back({.key = "router_bias", .value = fragment_flag(true), .comment = type_comment()});
  add_routing_groups(entries);
  add_shared_experts(entries);
  if (architecture_.experts == HfExperts::kDeepSeek)
    add_dense_of_deepseek(entries);
  else if (!mixtral)
    add_dense_of_qwen(entries);
  add_group("experts", std::move(entries));
  note_routing();
}

// Notes unmodelled parts of the routing.
void HfImport::note_routing() {
  const auto method = in_.text({"topk_method"});
  if (method && method->value == "noaux_tc")
    assumed.emplace_back(
        "the router's correction of loads (one number an expert) is a buffer, not a parameter");
}

}  // namespace stagecraft
