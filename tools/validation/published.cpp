#include "tools/validation/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
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

// The mapping at a dotted path.
YamlNode& section(YamlNode& root, const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot != std::string::npos) return section(section(root, path.substr(0, dot)), path.substr(dot + 1));
  if (root.find(path) == nullptr) {
    YamlNode empty;
    empty.kind = YamlNode::Kind::kMap;
    empty.where = root.where;
    put(root, path, std::move(empty));
  }
  return *root.find(path);
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
    {"replicated_embedding", "parallelism", "replicated_embedding"},
    {"zero_stage", "parallelism", "zero_stage"},
    {"zero_group", "parallelism", "zero_group"},
    {"micro_batch_size", "training", "micro_batch_size"},
    {"global_batch_size", "training", "global_batch_size"},
    {"sequence_length", "training", "sequence_length"},
    {"precision", "training", "precision"},
    {"sixteen_bit_layers", "training", "sixteen_bit_layers"},
    {"autocast", "training", "autocast"},
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
    {"unfused", "options", "unfused"},
    {"fused", "options", "fused"},
    {"expert_dispatcher", "options", "expert_dispatcher"},
    {"cuda_graphs", "options", "cuda_graphs"},
    {"fp8_dispatch", "options", "fp8_dispatch"},
    {"fp8_attention", "options", "fp8_attention"},
    {"fused_experts", "options", "fused_experts"},
    {"foreach_step", "options", "foreach_step"},
    {"fp8_parameters", "options", "fp8_parameters"},
    {"fp8_recipe", "options", "fp8_recipe"},
    {"software", "options", "software"},
    {"fused_loss", "options.memory", "fused_loss"},
    {"compiled_loss", "options.memory", "compiled_loss"},
    {"fp32_logits", "options.memory", "fp32_logits"},
    {"loss_chunks", "options.memory", "loss_chunks"},
    {"gathered_logits", "options.memory", "gathered_logits"},
    {"keep_outputs", "options.memory", "keep_outputs"},
    {"gradient_placeholders", "options.memory", "gradient_placeholders"},
    {"whole_gradients", "options.memory", "whole_gradients"},
    {"bucket_copies", "options.memory", "bucket_copies"},
    {"fragmentation", "options.memory", "fragmentation"},
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
  RowReader(const YamlNode& file, std::int64_t gpus_per_node, Diagnostics& diagnostics)
      : file_(file), gpus_per_node_(gpus_per_node), diagnostics_(diagnostics) {}

  PublishedRow read(const YamlNode& row) {
    PublishedRow out;
    YamlMap map(&row, "", row.where, diagnostics_);
    out.id = map.text("id", fmt::format("line {}", row.where.line));
    out.model = text(row, "model");
    note_keys(out, row);
    out.skip = text(row, "skip");
    if (const YamlNode* shared = file_.find("scenario")) out.scenario = *shared;
    out.scenario.kind = YamlNode::Kind::kMap;
    put(out.scenario, "stagecraft", yaml_scalar("1", row.where));
    put(out.scenario, "name", yaml_scalar(out.id, row.where));
    for (const YamlEntry& entry : row.entries) take(out.scenario, entry);
    add_model(out.scenario, row);
    add_cluster(out.scenario, out, row);
    read_time(out, row);
    out.memory_gib = measured(row, "memory_gib");
    if (map.has("oom")) out.out_of_memory = map.boolean("oom");
    return out;
  }

 private:
  // What makes a row the row that it is, and what others said of it.
  void note_keys(PublishedRow& out, const YamlNode& row) {
    for (const YamlEntry& entry : row.entries) {
      const bool known =
          std::ranges::any_of(kRowKeys, [&](const RowKey& key) { return key.row == entry.key; });
      if (known || entry.key == "model" || entry.key == "layers" || entry.key == "gpus")
        out.keys[entry.key] = as_text(entry.value);
    }
    const YamlNode* peers = row.find("peers");
    if (peers == nullptr) return;
    (void)YamlMap(peers, "peers", peers->where, diagnostics_);  // reports what is no mapping
    for (const YamlEntry& entry : peers->entries) {
      const auto seconds = entry.key.ends_with("_s") ? measured(*peers, entry.key) : std::nullopt;
      if (seconds) out.peers[entry.key.substr(0, entry.key.size() - 2)] = *seconds;
    }
  }

  static std::string text(const YamlNode& row, std::string_view key) {
    const YamlNode* node = row.find(key);
    return node == nullptr ? "" : node->text;
  }

  // A prediction is compared with one time: the first of those given.
  void read_time(PublishedRow& out, const YamlNode& row) {
    constexpr std::string_view kTimes[] = {"iteration_time_s", "iteration_time_ms", "tokens_per_s_per_gpu"};
    std::string_view first;
    for (const std::string_view key : kTimes) {
      const YamlNode* node = row.find(key);
      if (node == nullptr) continue;
      if (first.empty())
        first = key;
      else
        diagnostics_.warning(about(*node, key, "contradiction",
                                   fmt::format("stands beside {}, which is the time compared", first),
                                   "keep what was measured; the other may stand under `printed`"));
    }
    const std::optional<double> seconds = measured(row, kTimes[0]), ms = measured(row, kTimes[1]);
    out.iteration_seconds = seconds ? seconds : ms ? std::optional(*ms * 1e-3) : std::nullopt;
    out.tokens_per_s_per_gpu = measured(row, kTimes[2]);
  }

  std::optional<double> measured(const YamlNode& map, std::string_view key) {
    const YamlNode* node = map.find(key);
    if (node == nullptr) return std::nullopt;
    const std::optional<double> figure = parse_number(node->text);
    if (figure && *figure > 0) return figure;
    diagnostics_.error(
        about(*node, key, figure ? "out-of-range" : "bad-number",
              (node->text.empty() ? "this" : node->text) + " is no measurement",
              "a number above 0, without a unit; leave the key out where nothing was measured"));
    return std::nullopt;
  }

  static Diagnostic about(const YamlNode& value, std::string_view key, std::string code, std::string message,
                          std::string hint) {
    return {.code = std::move(code),
            .where = value.where,
            .path = std::string(key),
            .message = std::move(message),
            .hint = std::move(hint)};
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
    const YamlNode *models = file_.find("models"), *name = row.find("model"), *layers = row.find("layers");
    const YamlNode* known = models == nullptr || name == nullptr ? nullptr : models->find(name->text);
    if (layers != nullptr && known == nullptr)
      diagnostics_.error(about(*layers, "layers", "needs-another-key",
                               "belongs to a model of `models`, and the row's is none",
                               "write the model there, and its name as `model` of the row"));
    if (name == nullptr) return;
    YamlNode model = known == nullptr ? *name : *known;
    if (known != nullptr) {
      if (layers != nullptr) put(model, "layers", *layers);
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

  void add_cluster(YamlNode& scenario, PublishedRow& out, const YamlNode& row) {
    const YamlNode* gpus = row.find("gpus");
    if (gpus == nullptr) return;
    out.gpus = parse_integer(gpus->text);
    if (!out.gpus || *out.gpus < 1)
      return diagnostics_.error(about(*gpus, "gpus", "out-of-range",
                                      in_quotes(gpus->text) + " is no number of GPUs",
                                      "a whole number from 1 on"));
    if (*out.gpus > gpus_per_node_ && *out.gpus % gpus_per_node_ != 0 && out.skip.empty())
      out.skip = fmt::format("{} GPUs are no multiple of the {} of a node (`gpus_per_node`)", *out.gpus,
                             gpus_per_node_);
    YamlNode& cluster = section(scenario, "cluster");
    if (*out.gpus < gpus_per_node_) {
      put(cluster, "gpus", *gpus);
    } else {
      put(cluster, "nodes", yaml_scalar(std::to_string(*out.gpus / gpus_per_node_), gpus->where));
    }
  }

  const YamlNode& file_;
  std::int64_t gpus_per_node_;
  Diagnostics& diagnostics_;
};

// The names of `columns:`, each once; empty where the file has none.
std::vector<std::string> read_columns(YamlMap& file) {
  std::vector<std::string> columns = file.texts("columns");
  for (auto name = columns.begin(); name != columns.end(); ++name)
    if (std::find(columns.begin(), name, *name) != name)
      file.error("columns", "duplicate-name", in_quotes(*name) + " is the name of two columns");
  return columns;
}

// Rows may be lists under a shared `columns:` line. A row does not have a key whose value is `null`.
std::vector<YamlNode> rows_of(YamlMap& file) {
  const std::vector<std::string> columns = read_columns(file);
  const YamlNode* rows = file.get("rows");
  if (rows == nullptr || rows->kind != YamlNode::Kind::kSequence) {
    file.warning("rows", "not-published", "is no list of rows: nothing is scored",
                 "a row is `{id: NAME, gpus: 8, …}`");
    return {};
  }
  std::vector<YamlNode> out;
  for (const YamlNode& row : rows->items) {
    if (row.kind != YamlNode::Kind::kSequence || columns.empty()) {
      out.push_back(row);
      continue;
    }
    if (row.items.size() != columns.size())
      file.diagnostics().error(
          {.code = "wrong-length",
           .where = row.where,
           .path = "rows",
           .message = fmt::format("a row of {} under {}", counted(std::ssize(row.items), "value"),
                                  counted(std::ssize(columns), "column")),
           .hint = "write `null` for what the row does not have"});
    YamlNode named;
    named.kind = YamlNode::Kind::kMap;
    named.where = row.where;
    for (std::size_t i = 0; i < std::min(row.items.size(), columns.size()); ++i)
      put(named, columns[i], row.items[i]);
    out.push_back(std::move(named));
  }
  const auto is_null = [](const YamlEntry& entry) { return entry.value.kind == YamlNode::Kind::kNull; };
  for (YamlNode& row : out) std::erase_if(row.entries, is_null);
  return out;
}

// "owner/repository @4dcaae51", or the paper.
std::string origin_of(YamlMap& source, const std::string& url) {
  const std::string repository = source.text("repo", ""), commit = source.text("commit", "");
  if (repository.empty()) return url;
  if (commit.empty()) return repository;
  constexpr std::size_t kShortHash = 8;
  const bool hash = commit.find(' ') == std::string::npos;
  return repository + " @" + (hash ? commit.substr(0, kShortHash) : commit);
}

// What a set says of itself, and which memory its figures are of.
PublishedSet read_head(YamlMap& file) {
  PublishedSet set;
  set.name = file.text("set");
  if (!file.has("source"))
    file.warning("source", "missing-key", "is not given: nobody can look the figures up",
                 "source: {title: who measured it, and where}");
  YamlMap source = file.map("source");  // what else it says is for whoever reads the file
  set.title = source.text("title", "");
  set.url = source.text("url", "");
  set.origin = origin_of(source, set.url);
  set.licence = source.text("licence", "");
  set.assumed = file.texts("assumed");
  if (file.has("memory_figure"))
    set.memory_figure = file.choose<MemoryFigure>("memory_figure", kMemoryFigureNames);
  constexpr std::string_view kRanks[] = {"first", "last"};
  if (file.has("memory_rank"))
    set.memory_rank =
        file.choice("memory_rank", to_strings(kRanks)) == 0 ? MemoryRank::kFirst : MemoryRank::kLast;
  return set;
}

constexpr std::string_view kFileKeys[] = {
    "format",        "set",           "source",   "hardware", "notes",   "assumed",
    "memory_figure", "memory_rank",   "memory",   "rows",     "columns", "models",
    "flops",         "gpus_per_node", "scenario", "rounding", "tables"};

// A file may hold what else its readers want to know; only what looks like a slip is mentioned.
void mention_slips(const YamlNode& root, Diagnostics& diagnostics) {
  const std::vector<std::string> names = to_strings(kFileKeys);
  for (const YamlEntry& entry : root.entries) {
    const std::optional<std::string> near = nearest_name(entry.key, names);
    if (!near || *near == entry.key) continue;
    diagnostics.warning({.code = "unknown-key",
                         .where = entry.where,
                         .path = entry.key,
                         .message = "is not read",
                         .hint = "did you mean " + in_quotes(*near) + "?"});
  }
}

void check_ids(const std::vector<YamlNode>& rows, Diagnostics& diagnostics) {
  std::set<std::string> seen;
  for (const YamlNode& row : rows) {
    const YamlNode* id = row.find("id");
    if (id == nullptr || seen.insert(id->text).second) continue;
    diagnostics.warning({.code = "duplicate-name",
                         .where = id->where,
                         .path = "id",
                         .message = in_quotes(id->text) + " is the id of a row before",
                         .hint = "ids tell rows apart in reports and fits"});
  }
}

// What is known of the source of a set, for its rows.
void add_known(const KnownSource& known, PublishedSet& set) {
  bool meant = false, used = false;
  for (PublishedRow& row : set.rows) {
    if (!known.is_of(row.scenario)) continue;
    meant = true;
    used |= known.complete(row.scenario);
  }
  if (meant && known.memory_figure && !set.memory_figure) {
    set.memory_figure = known.memory_figure;
    used = true;
  }
  if (used) set.known.push_back(known.why);
}

}  // namespace

std::optional<PublishedSet> load_published(const std::filesystem::path& file,
                                           const std::vector<KnownSource>& sources,
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
  const ErrorWatch errors(diagnostics);
  YamlMap top(&*root, "", root->where, diagnostics);
  PublishedSet set = read_head(top);
  set.folder = file.parent_path();
  constexpr std::int64_t kUsual = 8;  // the format's rule where a file does not say
  const std::int64_t gpus_per_node = top.integer("gpus_per_node", {.min = 1, .fallback = kUsual});
  for (const char* key : {"scenario", "models"}) (void)top.map(key);  // reports what is no mapping
  RowReader reader(*root, gpus_per_node, diagnostics);
  const std::vector<YamlNode> rows = rows_of(top);
  for (const YamlNode& row : rows) set.rows.push_back(reader.read(row));
  for (const KnownSource& known : known_of(sources, set.origin)) add_known(known, set);
  check_ids(rows, diagnostics);
  mention_slips(*root, diagnostics);
  if (!errors.clean()) return std::nullopt;
  return set;
}

}  // namespace stagecraft
