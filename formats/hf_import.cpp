#include "formats/hf_import.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace stagecraft {

FragmentEntry number_entry(std::string key, const HfNumber& number) {
  return {.key = std::move(key), .value = fragment_number(number.value, number.where), .comment = number.key};
}

// The architecture by `model_type`, otherwise by the class in `architectures`, with a warning; nullptr when
// both are unknown.
const HfArchitecture* HfImport::named_architecture() {
  const auto type = in_.text({"model_type"});
  const auto classes = in_.texts("architectures");
  model_type = type ? type->value : "";
  const std::string class_name = classes && !classes->value.empty() ? classes->value.front() : "";
  if (!class_name.empty() && !has_language_head(class_name)) other_head_ = class_name;
  if (const HfArchitecture* known = hf_architecture(model_type)) return known;
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

std::string HfImport::unknown_type() const {
  return model_type.empty() ? "is not given" : fmt::format("{} is not known here", in_quotes(model_type));
}

// A type that is not known is read as Llama when its keys are Llama's, with a warning; else it is an error.
bool HfImport::refuse_unlike_llama() {
  const std::vector<std::string> reasons = unlike_llama();
  if (reasons.empty()) return false;
  in_.error("model_type", "unknown-model-type",
            fmt::format("{}, and it is not read as llama: {}", unknown_type(), join(reasons, ", ")),
            "read are " + join(hf_model_types(), ", "));
  return true;
}

void HfImport::accept_as_llama() {
  const std::string what = unknown_type();
  in_.warning("model_type", "unknown-model-type",
              fmt::format("{}; its keys are those of llama, and it is read as one", what),
              "compare the parameter count with the published one");
  assumed.push_back(fmt::format("layers as in llama: model_type {}", what));
  architecture_ = *hf_architecture("llama");
  architecture_.tied = true;  // as PreTrainedConfig has it, until a class says otherwise
  unknown_ = true;
  if (model_type.empty()) model_type = "llama";
  refuse_shape_words();
}

// Of another class only the layers are those of the language model.
void HfImport::warn_of_other_head(std::int64_t tokens) {
  if (other_head_.empty()) return;
  in_.warning(
      "architectures", "not-modelled",
      fmt::format("{} does not end in the head of a language model: its own, if any, is not modelled, and "
                  "one of {} tokens is priced in its place",
                  in_quotes(other_head_), with_thousands(tokens)),
      architecture_.tied ? "" : "tied_embeddings: true leaves the parameters of that head out");
  assumed.push_back(fmt::format("the head of a language model in place of that of {}", other_head_));
}

// Keys that say nothing here, where they are given.
void HfImport::list_unread(std::initializer_list<std::string_view> keys, std::string_view why) {
  std::vector<std::string> found;
  for (const std::string_view key : keys)
    if (in_.first({key}) != nullptr) found.emplace_back(key);
  if (!found.empty()) ignored.push_back(fmt::format("{}: {}", join(found, ", "), why));
}

void HfImport::note_altered(const YamlEntry& entry, std::string_view meant, const std::string& read) {
  altered.push_back({.code = "altered-key",
                     .where = entry.where,
                     .path = in_.path_of(entry.key),
                     .message = fmt::format("not a key of {}, read as '{}' ({})", model_type, meant, read)});
  assumed.push_back(fmt::format("{} means {}: the file was altered", entry.key, meant));
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
      const bool heard = item.key == "architectures" || (!other_head_.empty() && is_of_task_head(item.key));
      if (!heard) found.push_back(item.key);
      in_.mark(item.key);
    }
    for (const std::string_view key : group.keys) all_known.emplace_back(key);
    if (!found.empty()) ignored.push_back(fmt::format("{}: {}", join(found, ", "), group.reason));
  }
  warn_of_unknown_keys(all_known);
}

void HfImport::warn_of_unknown_keys(const std::vector<std::string>& all_known) {
  constexpr std::size_t kMost = 20;  // limit on warnings
  std::vector<std::string> unknown;
  for (const YamlEntry& item : in_.config().entries) {
    if (in_.is_known(item.key) || item.value.kind == YamlNode::Kind::kNull) continue;
    if (item.key.ends_with("_token_id")) continue;  // of images and the like
    const auto near = nearest_name(item.key, all_known);
    if (near && hf_default_shapes(*near) && in_.config().find(*near) == nullptr) {
      in_.error(item.key, "unknown-key", "is not known here, and a key of nearly this name shapes the layers",
                fmt::format("did you mean {}?", in_quotes(*near)));
      continue;
    }
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
  const ErrorWatch watch(in_.diagnostics());
  if (const auto layers = in_.required({"num_hidden_layers", "n_layer"})) layers_ = layers->value;
  const HfArchitecture* known = named_architecture();
  if (known != nullptr) architecture_ = *known;
  const ErrorWatch layers_watch(in_.diagnostics());
  read_latent_switch();
  refuse_other_layers();
  find_window();
  if (known == nullptr) {
    // Layers that are refused by name belong to types that are not known.
    if (refuse_unlike_llama() || !layers_watch.clean()) return false;
    accept_as_llama();
  }
  read_sizes();
  read_heads();
  read_feed_forward();
  read_latent_attention();
  read_window();
  read_ends();
  read_positions();
  read_activation();
  read_clamp();
  read_biases();
  read_qk_norm();
  read_sinks();
  warn_of_unpriced();
  read_dropout();
  note_the_rest();
  return watch.clean();
}

}  // namespace stagecraft
