#include "tools/validation/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {
namespace {

void put(YamlNode& map, const std::string& key, YamlNode value) {
  map.kind = YamlNode::Kind::kMap;
  if (YamlNode* known = map.find(key)) {
    *known = std::move(value);
    return;
  }
  map.entries.push_back({.key = key, .where = value.where, .value = std::move(value)});
}

YamlNode& section(YamlNode& root, const std::string& key) {
  if (root.find(key) == nullptr) {
    YamlNode empty;
    empty.kind = YamlNode::Kind::kMap;
    empty.where = root.where;
    put(root, key, std::move(empty));
  }
  return *root.find(key);
}

// Values that are equal have equal text.
std::string as_text(const YamlNode& node) {
  std::string out = node.text;
  for (const YamlNode& item : node.items) out += as_text(item) + ",";
  for (const YamlEntry& entry : node.entries) out += entry.key + ":" + as_text(entry.value) + ",";
  return out;
}

struct RowKey {
  std::string_view row, section, key;
};

// Row keys are scenario keys without their section.
constexpr RowKey kRowKeys[] = {
    {"tensor", "parallelism", "tensor"},
    {"pipeline", "parallelism", "pipeline"},
    {"data", "parallelism", "data"},
    {"context", "parallelism", "context"},
    {"context_exchange", "parallelism", "context_exchange"},
    {"expert", "parallelism", "expert"},
    {"expert_tensor", "parallelism", "expert_tensor"},
    {"virtual_stages", "parallelism", "virtual_stages"},
    {"stage_layers", "parallelism", "stage_layers"},
    {"embedding_as_layer", "parallelism", "embedding_as_layer"},
    {"loss_as_layer", "parallelism", "loss_as_layer"},
    {"sequence_parallel", "parallelism", "sequence_parallel"},
    {"zero_stage", "parallelism", "zero_stage"},
    {"zero_group", "parallelism", "zero_group"},
    {"micro_batch_size", "training", "micro_batch_size"},
    {"global_batch_size", "training", "global_batch_size"},
    {"sequence_length", "training", "sequence_length"},
    {"precision", "training", "precision"},
    {"recompute", "training", "recompute"},
    {"attention", "training", "attention"},
    {"gradient_dtype", "training", "gradient_dtype"},
    {"moment_dtype", "training", "moment_dtype"},
    {"master_weights", "training", "master_weights"},
    {"master_remainders", "training", "master_remainders"},
    {"overlap_gradients", "overlap", "gradients"},
    {"overlap_parameters", "overlap", "parameters"},
    {"overlap_pipeline", "overlap", "pipeline"},
    {"overlap_tensor", "overlap", "tensor"},
    {"overlap_context", "overlap", "context"},
    {"overlap_expert", "overlap", "expert"},
    {"overlap_shared_experts", "overlap", "shared_experts"},
    {"scatter_gather", "options", "scatter_gather"},
    {"gradient_accumulation_fusion", "options", "gradient_accumulation_fusion"},
    {"bucket_parameters", "options", "bucket_parameters"},
    {"reshard_after_forward", "options", "reshard_after_forward"},
    {"attention_kernel", "options", "attention_kernel"},
    {"fused_kernels", "options", "fused_kernels"},
    {"expert_dispatcher", "options", "expert_dispatcher"},
    {"cuda_graphs", "options", "cuda_graphs"},
    {"fp8_dispatch", "options", "fp8_dispatch"},
    {"fp8_parameters", "options", "fp8_parameters"},
    {"fp8_recipe", "options", "fp8_recipe"},
    {"software", "options", "software"},
    {"schedule", "", "schedule"},
};

// What a row says that is no scenario key: measurements, other tools' figures, remarks.
constexpr std::array<std::string_view, 14> kOtherRowKeys = {"id",
                                                            "model",
                                                            "layers",
                                                            "gpus",
                                                            "iteration_time_s",
                                                            "iteration_time_ms",
                                                            "tokens_per_s_per_gpu",
                                                            "note",
                                                            "printed",
                                                            "memory_gib",
                                                            "oom",
                                                            "regime",
                                                            "peers",
                                                            "skip"};

class RowReader {
 public:
  RowReader(const YamlNode& file, std::string fabric, std::int64_t gpus_per_node, Diagnostics& diagnostics)
      : file_(file), fabric_(std::move(fabric)), gpus_per_node_(gpus_per_node), diagnostics_(diagnostics) {}

  PublishedRow read(const YamlNode& row) {
    PublishedRow out;
    out.id = text(row, "id");
    out.model = text(row, "model");
    note_keys(out, row);
    out.skip = text(row, "skip");
    if (const YamlNode* shared = file_.find("scenario")) out.scenario = *shared;
    out.scenario.kind = YamlNode::Kind::kMap;
    put(out.scenario, "stagecraft", yaml_scalar("1", row.where));
    put(out.scenario, "name", yaml_scalar(out.id, row.where));
    for (const YamlEntry& entry : row.entries) take(out.scenario, entry);
    add_model(out.scenario, row);
    add_cluster(out.scenario, row);
    out.iteration_seconds = measured(row, "iteration_time_s");
    if (const auto ms = measured(row, "iteration_time_ms")) out.iteration_seconds = *ms * 1e-3;
    out.tokens_per_s_per_gpu = measured(row, "tokens_per_s_per_gpu");
    out.memory_gib = measured(row, "memory_gib");
    if (const std::string oom = text(row, "oom"); !oom.empty()) out.out_of_memory = oom == "true";
    return out;
  }

 private:
  // What makes a row the row that it is, and what others said of it.
  static void note_keys(PublishedRow& out, const YamlNode& row) {
    for (const YamlEntry& entry : row.entries) {
      const bool known =
          std::ranges::any_of(kRowKeys, [&](const RowKey& key) { return key.row == entry.key; });
      if (known || entry.key == "model" || entry.key == "layers" || entry.key == "gpus")
        out.keys[entry.key] = as_text(entry.value);
    }
    const YamlNode* peers = row.find("peers");
    if (peers == nullptr) return;
    for (const YamlEntry& entry : peers->entries) {
      const auto seconds = entry.key.ends_with("_s") ? parse_number(entry.value.text) : std::nullopt;
      if (seconds) out.peers[entry.key.substr(0, entry.key.size() - 2)] = *seconds;
    }
  }

  static std::string text(const YamlNode& row, std::string_view key) {
    const YamlNode* node = row.find(key);
    return node == nullptr ? "" : node->text;
  }

  std::optional<double> measured(const YamlNode& row, std::string_view key) {
    const YamlNode* node = row.find(key);
    const std::optional<double> figure = node == nullptr ? std::nullopt : parse_number(node->text);
    if (figure && !(*figure > 0 && std::isfinite(*figure)))
      diagnostics_.error({.code = "out-of-range",
                          .where = node->where,
                          .path = std::string(key),
                          .message = node->text + " is no measurement",
                          .hint = "a number above 0; leave the key out where nothing was measured"});
    return figure;
  }

  void take(YamlNode& scenario, const YamlEntry& entry) {
    for (const RowKey& known : kRowKeys) {
      if (known.row != entry.key) continue;
      YamlNode& target = known.section.empty() ? scenario : section(scenario, std::string(known.section));
      put(target, std::string(known.key), entry.value);
      return;
    }
    if (std::find(kOtherRowKeys.begin(), kOtherRowKeys.end(), entry.key) != kOtherRowKeys.end()) return;
    diagnostics_.warning({.code = "unknown-row-key",
                          .where = entry.where,
                          .path = entry.key,
                          .message = "is not a key of a scenario; kept as a remark",
                          .hint = ""});
  }

  void add_model(YamlNode& scenario, const YamlNode& row) {
    const YamlNode* models = file_.find("models");
    const YamlNode* name = row.find("model");
    if (name == nullptr) return;
    const YamlNode* known = models == nullptr ? nullptr : models->find(name->text);
    YamlNode model = known == nullptr ? *name : *known;
    if (known != nullptr) {
      if (const YamlNode* layers = row.find("layers")) put(model, "layers", *layers);
      grow_positions(model, section(scenario, "training"));
    }
    put(scenario, "model", std::move(model));
  }

  // The model's positions reach at least as far as the row's sequences.
  static void grow_positions(YamlNode& model, const YamlNode& training) {
    const YamlNode* sequence = training.find("sequence_length");
    const YamlNode* most = model.find("max_sequence_length");
    if (sequence == nullptr || most == nullptr) return;
    const auto wanted = parse_integer(sequence->text);
    const auto has = parse_integer(most->text);
    if (wanted && has && *wanted > *has) put(model, "max_sequence_length", *sequence);
  }

  void add_cluster(YamlNode& scenario, const YamlNode& row) const {
    const YamlNode* gpus = row.find("gpus");
    const auto count = gpus == nullptr ? std::nullopt : parse_integer(gpus->text);
    if (!count) return;
    YamlNode& cluster = section(scenario, "cluster");
    if (*count < gpus_per_node_) {
      put(cluster, "gpus", *gpus);
    } else {
      put(cluster, "nodes", yaml_scalar(std::to_string(*count / gpus_per_node_), gpus->where));
    }
    if (!fabric_.empty() && cluster.find("fabric") == nullptr)
      put(cluster, "fabric", yaml_scalar(fabric_, gpus->where));
  }

  const YamlNode& file_;
  std::string fabric_;
  std::int64_t gpus_per_node_;
  Diagnostics& diagnostics_;
};

// Rows may be lists under a shared `columns:` line.
std::vector<YamlNode> rows_of(const YamlNode& file) {
  const YamlNode* rows = file.find("rows");
  const YamlNode* columns = file.find("columns");
  if (rows == nullptr) return {};
  std::vector<YamlNode> out;
  for (const YamlNode& row : rows->items) {
    if (row.kind != YamlNode::Kind::kSequence || columns == nullptr) {
      out.push_back(row);
      continue;
    }
    YamlNode named;
    named.where = row.where;
    for (std::size_t i = 0; i < std::min(row.items.size(), columns->items.size()); ++i) {
      put(named, columns->items[i].text, row.items[i]);
    }
    out.push_back(std::move(named));
  }
  return out;
}

std::string text_at(const YamlNode& file, std::string_view outer, std::string_view inner) {
  const YamlNode* node = file.find(outer);
  node = node == nullptr ? nullptr : node->find(inner);
  return node == nullptr ? "" : node->text;
}

// Of the set's nodes; nullopt after reporting.
std::optional<std::int64_t> gpus_per_node(const YamlNode& file, Diagnostics& diagnostics) {
  constexpr std::int64_t kUsual = 8;  // the format's rule where a file does not say
  const YamlNode* node = file.find("gpus_per_node");
  if (node == nullptr) return kUsual;
  const std::optional<std::int64_t> count = parse_integer(node->text);
  if (count && *count >= 1) return count;
  diagnostics.error({.code = "out-of-range",
                     .where = node->where,
                     .path = "gpus_per_node",
                     .message = in_quotes(node->text) + " is no number of GPUs",
                     .hint = "a whole number from 1 on"});
  return std::nullopt;
}

void unknown_word(const YamlNode& word, std::string_view path, std::string_view is_no, std::string_view hint,
                  Diagnostics& diagnostics) {
  diagnostics.error({.code = "unknown-word",
                     .where = word.where,
                     .path = std::string(path),
                     .message = fmt::format("{} is no {}", in_quotes(word.text), is_no),
                     .hint = std::string(hint)});
}

// Which memory the set's figures are of; false after reporting.
bool read_memory_keys(const YamlNode& file, PublishedSet& set, Diagnostics& diagnostics) {
  if (const YamlNode* figure = file.find("memory_figure")) {
    const auto known = std::ranges::find(kMemoryFigureNames, figure->text);
    if (known == std::end(kMemoryFigureNames)) {
      unknown_word(*figure, "memory_figure", "kind of memory figure", "one of allocated, reserved, device",
                   diagnostics);
      return false;
    }
    set.memory_figure = static_cast<MemoryFigure>(known - std::begin(kMemoryFigureNames));
  }
  if (const YamlNode* rank = file.find("memory_rank")) {
    if (rank->text != "first" && rank->text != "last") {
      unknown_word(*rank, "memory_rank", "rank that logs its memory",
                   "first, last, or no `memory_rank`: the fullest", diagnostics);
      return false;
    }
    set.memory_rank = rank->text == "first" ? MemoryRank::kFirst : MemoryRank::kLast;
  }
  return true;
}

// "owner/repository @4dcaae51", or the paper.
std::string origin_of(const YamlNode& file, const std::string& url) {
  const std::string repository = text_at(file, "source", "repo"), commit = text_at(file, "source", "commit");
  if (repository.empty()) return url;
  if (commit.empty()) return repository;
  constexpr std::size_t kShortHash = 8;
  const bool hash = commit.find(' ') == std::string::npos;
  return repository + " @" + (hash ? commit.substr(0, kShortHash) : commit);
}

}  // namespace

SetFabrics load_set_fabrics(const std::filesystem::path& file, Diagnostics& diagnostics) {
  SetFabrics fabrics;
  const std::optional<YamlNode> root = load_yaml_file(file, diagnostics);
  if (!root) return fabrics;
  for (const YamlEntry& entry : root->entries) fabrics[entry.key] = entry.value.text;
  return fabrics;
}

std::optional<PublishedSet> load_published(const std::filesystem::path& file, const SetFabrics& fabrics,
                                           Diagnostics& diagnostics) {
  const std::optional<YamlNode> root = load_yaml_file(file, diagnostics);
  if (!root) return std::nullopt;
  const YamlNode* format = root->find("format");
  if (format == nullptr || format->text != "stagecraft.published/1") {
    diagnostics.error({.code = "not-published",
                       .where = root->where,
                       .path = "format",
                       .message = "this is no file of published measurements",
                       .hint = "it begins with `format: stagecraft.published/1`"});
    return std::nullopt;
  }
  PublishedSet set;
  set.folder = file.parent_path();
  if (const YamlNode* name = root->find("set")) set.name = name->text;
  set.title = text_at(*root, "source", "title");
  set.url = text_at(*root, "source", "url");
  set.origin = origin_of(*root, set.url);
  set.licence = text_at(*root, "source", "licence");
  if (const YamlNode* assumed = root->find("assumed")) {
    for (const YamlNode& item : assumed->items) set.assumed.push_back(item.text);
  }
  if (!read_memory_keys(*root, set, diagnostics)) return std::nullopt;
  const auto fabric = fabrics.find(set.name);
  const std::optional<std::int64_t> gpus = gpus_per_node(*root, diagnostics);
  if (!gpus) return std::nullopt;
  RowReader reader(*root, fabric == fabrics.end() ? std::string() : fabric->second, *gpus, diagnostics);
  const ErrorWatch errors(diagnostics);
  for (const YamlNode& row : rows_of(*root)) set.rows.push_back(reader.read(row));
  if (!errors.clean()) return std::nullopt;
  return set;
}

}  // namespace stagecraft
