#include "formats/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "formats/hf_import.hpp"
#include "formats/hf_words.hpp"
#include "formats/import_entries.hpp"
#include "models/load_model.hpp"

namespace stagecraft {

namespace {

void warn_of_other_part(const YamlEntry& entry, Diagnostics& diagnostics) {
  diagnostics.warning(
      {.code = "not-modelled",
       .where = entry.where,
       .path = entry.key,
       .message = "a part beside the language model: neither its time nor its memory is counted",
       .hint = {}});
}

// The language model of a model of several parts; the keys that its outer mapping holds for all are put into
// it.
struct LanguageModel {
  YamlNode config;
  std::string path;
};

LanguageModel language_model(const YamlNode& root, Diagnostics& diagnostics,
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
      warn_of_other_part(entry, diagnostics);
    }
    return found;
  }
  // Its keys beside those of the other parts.
  LanguageModel whole{.config = root, .path = {}};
  std::erase_if(whole.config.entries, [&](const YamlEntry& entry) {
    const bool other = entry.key == "vision_config" || entry.key == "audio_config";
    if (other) warn_of_other_part(entry, diagnostics);
    return other;
  });
  return whole;
}

// "deepseek_v3: 671,026,404,352 parameters, 37,552,282,624 of them active per token"
std::vector<std::string> title(const std::string& name, const TransformerSpec& model) {
  const TransformerSpec main = main_model(model);
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

// `path`: of the mapping in the file.
std::optional<TransformerSpec> checked_model(const Entries& entries, const SourceLocation& where,
                                             const std::string& path, Diagnostics& diagnostics,
                                             Origins* origins) {
  Diagnostics found;
  const YamlNode tree = to_tree(entries, where);
  YamlMap map(&tree, "model", where, found, origins);
  ModelSpec spec = load_model(map);
  for (const Diagnostic& mistake : found.items()) diagnostics.add(in_words_of_config(mistake, entries, path));
  if (found.has_errors()) return std::nullopt;
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
  const auto [config, path] = language_model(*root, diagnostics, assumed);
  HfImport import(config, path, diagnostics);
  const bool ok = import.run();
  std::optional<TransformerSpec> model;
  if (ok) model = checked_model(import.model, config.where, path, diagnostics, origins);
  std::string count;
  if (model) {
    model->name = import.model_type;
    count = human_count(parameter_count(main_model(*model)));
  }
  for (Diagnostic& warning : import.altered) {
    warning.hint = "the file was altered" + (model ? "; compare the parameter count, " + count : "");
    diagnostics.warning(std::move(warning));
  }
  if (!model) return std::nullopt;

  Entries entries = {{.key = "name",
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
