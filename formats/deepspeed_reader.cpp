#include "formats/deepspeed_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

struct Setting {
  std::string_view path;               // of a value or of a whole section; a trailing '*' stands for any rest
  std::string_view not_modelled = {};  // empty: it changes neither time nor memory
};

// source  DeepSpeed documentation, configuration JSON; GPT-NeoX @ea7aefd configs/neox_arguments.md.
constexpr Setting kSettings[] = {
    {"optimizer"},
    {"scheduler"},
    {"gradient_clipping"},
    {"prescale_gradients"},
    {"gradient_predivide_factor"},
    {"steps_per_print"},
    {"wall_clock_breakdown"},
    {"memory_breakdown"},
    {"dump_state"},
    {"tensorboard"},
    {"wandb"},
    {"csv_monitor"},
    {"comms_logger"},
    {"flops_profiler"},
    {"autotuning"},
    {"checkpoint"},
    {"zero_allow_untested_optimizer"},
    {"zero_force_ds_cpu_optimizer"},
    {"bf16.enabled"},
    {"bf16.immediate_grad_update"},
    {"bf16.check_*"},
    {"bf16.bf16_master_weights_and_grads", "masters in 16 bit"},
    {"bf16.bf16_optimizer_states", "moments in 16 bit"},
    {"bfloat16.enabled"},
    {"bfloat16.immediate_grad_update"},
    {"bfloat16.check_*"},
    {"bfloat16.bf16_master_weights_and_grads", "masters in 16 bit"},
    {"bfloat16.bf16_optimizer_states", "moments in 16 bit"},
    {"fp16.enabled"},
    {"fp16.type"},
    {"fp16.fp16"},
    {"fp16.auto_cast"},
    {"fp16.loss_scale*"},
    {"fp16.initial_scale_power"},
    {"fp16.*hysteresis"},
    {"fp16.min_loss_scale"},
    {"fp16.fp16_master_weights_and_grads", "masters in 16 bit"},
    {"data_types.grad_accum_dtype"},
    {"zero_optimization.contiguous_gradients"},
    {"zero_optimization.overlap_comm"},
    {"zero_optimization.allgather_partitions"},
    {"zero_optimization.allgather_bucket_size"},
    {"zero_optimization.round_robin_gradients"},
    {"zero_optimization.elastic_checkpoint"},
    {"zero_optimization.load_from_fp32_weights"},
    {"zero_optimization.ignore_unused_parameters"},
    {"zero_optimization.cpu_offload_use_pin_memory"},
    {"zero_optimization.stage3_gather*"},
    {"zero_optimization.sub_group_size", "the optimizer's step in groups of parameters"},
    {"zero_optimization.stage3_prefetch_bucket_size", "weights are gathered a layer ahead"},
    {"zero_optimization.stage3_param_persistence_threshold", "small weights are sharded as all others"},
    {"zero_optimization.stage3_max_live_parameters", "one layer is gathered ahead"},
    {"zero_optimization.stage3_max_reuse_distance", "weights are gathered again for the backward"},
    {"zero_optimization.zero_hpz_partition_size", "a second copy of the weights inside each node"},
    {"zero_optimization.zero_quantized_weights", "weights are gathered in 8 bit"},
    {"zero_optimization.zero_quantized_gradients", "gradients are reduced in 4 bit"},
    {"zero_optimization.offload_optimizer.pin_memory"},
    {"zero_optimization.offload_optimizer.buffer_count"},
    {"zero_optimization.offload_optimizer.fast_init"},
    {"zero_optimization.offload_optimizer.pipeline*", "the host's step overlaps its transfers"},
    {"zero_optimization.offload_param.pin_memory"},
    {"zero_optimization.offload_param.buffer_*"},
    {"zero_optimization.offload_param.max_in_cpu"},
    {"activation_checkpointing.partition_activations", "kept activations are shared by the tensor ranks"},
    {"activation_checkpointing.cpu_checkpointing", "kept activations go to host memory"},
    {"activation_checkpointing"},
    {"communication_data_type", "gradients are sent in another width than they are kept in"},
    {"sparse_attention", "attention over a part of the positions"},
    {"compression_training", "the model is compressed while it trains"},
    {"curriculum_learning", "shorter sequences at the beginning"},
    {"data_efficiency", "shorter sequences at the beginning"},
    {"elasticity", "the number of GPUs changes"},
    {"compile", "the compiler fuses and schedules by itself"},
    {"aio"},
    // GPT-NeoX.
    {"partition_activations", "kept activations are shared by the tensor ranks"},
    {"synchronize_each_layer"},
    {"gpt_j_residual", "attention and feed-forward block side by side save one of two all-reduces"},
    {"output_layer_parallelism"},
    {"scaled_upper_triang_masked_softmax_fusion"},
    {"scaled_masked_softmax_fusion"},
    {"bias_gelu_fusion"},
    {"bias_dropout_fusion"},
    {"rope_fusion"},
    {"layernorm_fusion"},
    {"rmsnorm_fusion"},
    {"fused_*"},
    {"rotary_*"},
    {"rope_*"},
    {"init_method*"},
    {"output_layer_init_method"},
    {"lr_*"},
    {"min_lr"},
    {"warmup"},
    {"weight_decay"},
    {"*_interval"},
    {"train_iters"},
    {"eval_*"},
    {"checkpoint_*"},
    {"extra_save_iters"},
    {"keep_last_n_checkpoints"},
    {"save"},
    {"load"},
    {"finetune"},
    {"vocab_file"},
    {"merge_file"},
    {"data_path"},
    {"*_data_paths"},
    {"*_data_weights"},
    {"data_impl"},
    {"split"},
    {"tokenizer_type"},
    {"num_workers"},
    {"seed"},
    {"distributed_backend"},
    {"log_*"},
    {"logging"},
    {"tensorboard_dir"},
    {"tensorboard_writer"},
    {"use_wandb"},
    {"wandb_*"},
    {"launcher"},
    {"hostfile"},
    {"master_*"},
    {"deepspeed_mpi"},
    {"deepspeed_slurm"},
    {"layernorm_epsilon"},
    {"rms_norm_epsilon"},
    {"attention_softmax_in_fp32"},
    {"apply_query_key_layer_scaling"},
};

bool fits(std::string_view pattern, std::string_view path) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return path == pattern || (path.starts_with(pattern) && path[pattern.size()] == '.');
  return path.starts_with(pattern.substr(0, star)) && path.ends_with(pattern.substr(star + 1));
}

std::string canonical(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '-', '_');
  return name;
}

// Python and JSON both.
std::optional<bool> truth(std::string_view word) {
  if (word == "true" || word == "True") return true;
  if (word == "false" || word == "False") return false;
  return std::nullopt;
}

// The words of pydantic, and its 1 and 0.
std::optional<bool> lax_truth(std::string_view word) {
  static constexpr std::string_view kYes[] = {"true", "yes", "on", "1", "t", "y"};
  static constexpr std::string_view kNo[] = {"false", "no", "off", "0", "f", "n"};
  const std::string lower = lower_case(word);
  if (std::ranges::find(kYes, lower) != std::end(kYes)) return true;
  if (std::ranges::find(kNo, lower) != std::end(kNo)) return false;
  return std::nullopt;
}

// A whole number in quotes has no exponent: pydantic parses digits.
std::optional<std::int64_t> integer_of(const YamlNode& node) {
  const bool digits = node.text.find_first_not_of("+-0123456789") == std::string::npos;
  return node.quoted && !digits ? std::nullopt : parse_integer(node.text);
}

std::string hint_of(const YamlNode& node) {
  return node.quoted ? "numbers, true and false are written without quotes" : "";
}

bool is_off(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kNull ||
         (node.kind == YamlNode::Kind::kScalar && truth(node.text) == false);
}

constexpr double kWholeShare = 1;

// `old` is the switch of before 2021, which means all of it to the host.
void read_offload(SettingsReader& reader, const std::string& section, const char* old, const char* key,
                  std::vector<FragmentEntry>& offload) {
  const std::string path = "zero_optimization." + section;
  const std::string device = reader.text(path + ".device");
  if (reader.flag(old, false)) {
    if (device.empty()) return offload.push_back(share_entry(key, kWholeShare, reader.source(old)));
    if (device == "none")
      reader.error(old, "contradiction", fmt::format("and {}.device says none", path), "keep one of the two");
  }
  if (device == "nvme") {
    reader.error(path + ".device", "not-supported", "offloading to 'nvme' is not supported", "'cpu' is");
  } else if (device == "cpu") {
    const auto share = reader.number(path + ".ratio", 0, 1);
    offload.push_back(
        share_entry(key, share.value_or(kWholeShare), reader.source(path + (share ? ".ratio" : ".device"))));
  } else if (!device.empty() && device != "none") {
    reader.error(path + ".device", "unknown-name", in_quotes(device) + " is not a known device",
                 "cpu or none");
  }
}

}  // namespace

SettingsReader::SettingsReader(const YamlNode& root, std::string file, Diagnostics& diagnostics)
    : root_(root), file_(std::move(file)), diagnostics_(diagnostics) {
  refuse_twins(root_, "");
}

void SettingsReader::refuse_twins(const YamlNode& map, const std::string& prefix) {
  std::map<std::string, SourceLocation> seen;
  for (const YamlEntry& entry : map.entries) {
    const auto [first, is_new] = seen.emplace(canonical(entry.key), entry.where);
    if (!is_new)
      diagnostics_.error({.code = "duplicate-key",
                          .where = entry.where,
                          .path = prefix + entry.key,
                          .message = "is given twice, with dashes and with underscores",
                          .hint = "keep one of the two",
                          .notes = {{.where = first->second, .message = "first given here"}}});
    refuse_twins(entry.value, prefix + entry.key + '.');
  }
}

const YamlNode* SettingsReader::find(std::string_view path) const {
  const YamlNode* node = &root_;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    const auto entry =
        std::ranges::find_if(node->entries, [&](const YamlEntry& e) { return canonical(e.key) == part; });
    if (entry == node->entries.end()) return nullptr;
    node = &entry->value;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return node;
}

bool SettingsReader::is_auto(std::string_view path) const {
  const YamlNode* node = find(path);
  return node != nullptr && node->kind == YamlNode::Kind::kScalar && node->text == "auto";
}

// A part of a section may be null, as DeepSpeed's own defaults are.
void SettingsReader::check_sections(std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::string_view section = path.substr(0, dot);
    const YamlNode* node = find(section);
    if (node == nullptr) return;
    if (node->kind == YamlNode::Kind::kMap) continue;
    const bool null = node->kind == YamlNode::Kind::kNull;
    const bool part = section.find('.') != std::string_view::npos;
    if (!(null && part) && read_.emplace(section).second)
      error(section, "wrong-kind",
            fmt::format("{} stands where an object is required", null ? "null"
                                                                 : node->kind == YamlNode::Kind::kSequence
                                                                     ? "a list"
                                                                     : in_quotes(node->text)));
    return;
  }
}

const YamlNode* SettingsReader::get(std::string_view path) {
  check_sections(path);
  asked_.emplace(path);
  const YamlNode* node = find(path);
  if (node == nullptr) return nullptr;
  read_.emplace(path);
  return node->kind == YamlNode::Kind::kNull || is_auto(path) ? nullptr : node;
}

bool SettingsReader::is_lax(std::string_view path) const {
  return path.starts_with("zero_optimization.") && !is_neox(root_);
}

// Elsewhere DeepSpeed compares "8" with numbers, which Python refuses.
bool SettingsReader::may_read(std::string_view path, const YamlNode& node) const {
  return node.kind == YamlNode::Kind::kScalar && (!node.quoted || is_lax(path));
}

std::optional<std::int64_t> SettingsReader::integer(std::string_view path, std::int64_t min,
                                                    std::int64_t max) {
  const YamlNode* node = get(path);
  if (node == nullptr) return std::nullopt;
  const auto value = may_read(path, *node) ? integer_of(*node) : std::nullopt;
  if (!value)
    error(path, "not-a-number", "a whole number belongs here", hint_of(*node));
  else if (*value < min || *value > max)
    error(path, "out-of-range", fmt::format("{} is not between {} and {}", *value, min, max));
  else
    return value;
  return std::nullopt;
}

std::optional<double> SettingsReader::number(std::string_view path, double min, double max) {
  const YamlNode* node = get(path);
  if (node == nullptr) return std::nullopt;
  const auto value = may_read(path, *node) ? parse_number(node->text) : std::nullopt;
  if (value && *value >= min && *value <= max) return value;
  error(path, "out-of-range", fmt::format("a number between {:g} and {:g} belongs here", min, max),
        hint_of(*node));
  return std::nullopt;
}

std::optional<bool> SettingsReader::flag(std::string_view path) {
  const YamlNode* node = get(path);
  if (node == nullptr) return std::nullopt;
  const auto read = is_lax(path) ? lax_truth : truth;
  const auto value = may_read(path, *node) ? read(node->text) : std::nullopt;
  if (!value) error(path, "not-a-flag", "true or false belongs here", hint_of(*node));
  return value;
}

std::string SettingsReader::text(std::string_view path) {
  const YamlNode* node = get(path);
  if (node == nullptr) return {};
  if (node->kind == YamlNode::Kind::kScalar) return node->text;
  error(path, "not-a-word", "one word belongs here");
  return {};
}

ImportSource SettingsReader::source(std::string_view path) const {
  const YamlNode* node = find(path);
  if (node == nullptr) return {.comment = "default", .where = {file_, 0, 0}};
  return {.comment = std::string(path), .where = node->where};
}

ImportSource SettingsReader::source_or(std::string_view path, std::string derivation) const {
  if (has(path) && !is_auto(path)) return source(path);
  return {.comment = std::move(derivation), .where = {}};
}

void SettingsReader::error(std::string_view path, std::string code, std::string message, std::string hint) {
  diagnostics_.error({.code = std::move(code),
                      .where = source(path).where,
                      .path = std::string(path),
                      .message = std::move(message),
                      .hint = std::move(hint)});
}

void SettingsReader::warning(std::string_view path, std::string code, std::string message, std::string hint) {
  diagnostics_.warning({.code = std::move(code),
                        .where = source(path).where,
                        .path = std::string(path),
                        .message = std::move(message),
                        .hint = std::move(hint)});
}

void SettingsReader::missing(Severity severity, std::string key, std::string message, std::string hint) {
  diagnostics_.add({.severity = severity,
                    .code = "missing",
                    .where = {file_, 0, 0},
                    .path = std::move(key),
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

bool SettingsReader::decides(std::string_view path) const {
  const std::string below = std::string(path) + '.';
  return std::ranges::any_of(
      asked_, [&](const std::string& asked) { return asked == path || asked.starts_with(below); });
}

std::optional<std::string> SettingsReader::near_path(std::string_view path) const {
  constexpr std::size_t kShort = 4;  // a letter or two resemble many names
  const std::size_t name = path.rfind('.') + 1;
  if (path.size() - name < kShort) return std::nullopt;
  const std::string_view section = path.substr(0, name);
  std::vector<std::string> names;
  const auto consider = [&](std::string_view known) {
    if (known.starts_with(section) && known.find('*') == std::string_view::npos)
      names.emplace_back(known.substr(name, known.find('.', name) - name));
  };
  for (const std::string& asked : asked_) consider(asked);
  for (const Setting& setting : kSettings) consider(setting.path);
  const auto near = nearest_name(path.substr(name), names);
  return near ? std::optional(std::string(section) + *near) : std::nullopt;
}

// Where the setting decides and stands there by no other name, the default in its place would be wrong.
void SettingsReader::unknown(const YamlEntry& entry, const std::string& path) {
  const auto near = near_path(path);
  const bool refused = near && decides(*near) && find(*near) == nullptr;
  known_ = known_ || refused;
  diagnostics_.add({.severity = refused ? Severity::kError : Severity::kWarning,
                    .code = "unknown-option",
                    .where = entry.where,
                    .path = path,
                    .message = "is not known here, and not read",
                    .hint = near ? fmt::format("did you mean {}?", *near)
                                 : "if it changes time or memory, the prediction does not know"});
}

void SettingsReader::leftover(const YamlEntry& entry, const std::string& path) {
  const auto* const known =
      std::ranges::find_if(kSettings, [&](const Setting& setting) { return fits(setting.path, path); });
  known_ = known_ || known != std::end(kSettings);
  if (known == std::end(kSettings)) {
    unknown(entry, path);
  } else if (!known->not_modelled.empty() && !is_off(entry.value) && !is_auto(path)) {
    diagnostics_.warning({.code = "not-modelled",
                          .where = entry.where,
                          .path = path,
                          .message = fmt::format("is not modelled: {}", known->not_modelled)});
  } else {
    aside_.push_back(path);
  }
}

// Sections of which a part was read, or which the table knows part by part, are looked into.
void SettingsReader::visit(const YamlNode& map, const std::string& prefix) {
  for (const YamlEntry& entry : map.entries) {
    const std::string path = prefix + canonical(entry.key);
    if (read_.contains(path)) continue;
    const std::string below = path + '.';
    const bool partly =
        entry.value.kind == YamlNode::Kind::kMap &&
        (std::ranges::any_of(read_, [&](const std::string& r) { return r.starts_with(below); }) ||
         std::ranges::any_of(kSettings, [&](const Setting& s) { return s.path.starts_with(below); }));
    if (partly)
      visit(entry.value, below);
    else
      leftover(entry, path);
  }
}

std::vector<std::string> SettingsReader::finish() {
  visit(root_, "");
  return aside_.empty() ? std::vector<std::string>{} : wrapped("", aside_);
}

std::vector<FragmentEntry> read_cluster(SettingsReader& reader, const ImportRequest& request,
                                        std::int64_t gpus) {
  const std::string node = request.node.value_or("dgx-a100-80gb");
  if (!request.node)
    reader.missing(Severity::kWarning, "cluster.node",
                   fmt::format("nothing says which machine the job runs on: {} is assumed", node),
                   "--node NAME");
  Entries cluster{text_entry("node", node, {.comment = request.node ? "--node" : "assumed", .where = {}})};
  const ImportSource source{.comment = "--gpus", .where = {}};
  if (gpus % request.node_gpus == 0)
    cluster.push_back(entry("nodes", gpus / request.node_gpus, source));
  else if (gpus < request.node_gpus)
    cluster.push_back(entry("gpus", gpus, source));
  else
    reader.missing(Severity::kError, "cluster.nodes",
                   fmt::format("{} GPUs are no whole number of nodes of {}", gpus, request.node_gpus),
                   "--gpus N");
  return cluster;
}

ZeroSettings read_zero(SettingsReader& reader, std::vector<FragmentEntry>& options,
                       std::vector<FragmentEntry>& offload) {
  constexpr const char* kStage = "zero_optimization.stage";
  const std::optional<std::int64_t> stage = reader.integer(kStage, 0, 3);
  ZeroSettings zero{.stage = stage.value_or(0), .source = reader.source(kStage)};
  if (reader.is_auto(kStage))
    reader.error(kStage, "missing", "\"auto\" is filled in by the trainer", "0, 1, 2 or 3");
  // DeepSpeed overlaps by default from stage 3 on (@cbf3d661 deepspeed/runtime/zero/config.py,
  // overlap_comm_valid), and without ZeRO never (deepspeed/runtime/engine.py, allreduce_gradients).
  constexpr const char* kOverlap = "zero_optimization.overlap_comm";
  zero.overlap_source = {.comment = "stage 0 reduces after the backward", .where = {}};
  if (zero.stage > 0 || (!stage && reader.has(kStage))) {  // of a refused stage all mistakes are reported
    zero.overlaps_gradients = reader.flag(kOverlap, zero.stage == 3);
    zero.overlap_source = reader.source(kOverlap);
  }
  if (const auto bucket = reader.integer("zero_optimization.reduce_bucket_size", 1))
    options.push_back(
        entry("bucket_parameters", *bucket, reader.source("zero_optimization.reduce_bucket_size")));
  read_offload(reader, "offload_optimizer", "zero_optimization.cpu_offload", "optimizer", offload);
  read_offload(reader, "offload_param", "zero_optimization.cpu_offload_params", "weights", offload);
  if (!reader.flag("zero_optimization.reduce_scatter", true))
    reader.warning("zero_optimization.reduce_scatter", "not-modelled",
                   "gradients are reduce-scattered, not all-reduced");
  return zero;
}

void read_optimizer(SettingsReader& reader) {
  if (const auto said = priced_as_adam(reader.text("optimizer.type")))
    reader.warning("optimizer.type", "not-modelled", *said);
}

void read_precision(SettingsReader& reader, const ZeroSettings& zero, std::vector<FragmentEntry>& training) {
  const bool fp16 = reader.flag("fp16.enabled", false);
  const char* bf16_path = reader.has("bfloat16.enabled") ? "bfloat16.enabled" : "bf16.enabled";
  const bool bf16 = reader.flag(bf16_path, false);
  if (fp16 && bf16) reader.error("fp16.enabled", "contradiction", "fp16 and bf16 are both on", "one of them");
  if (!fp16 && !bf16 && (reader.is_auto("fp16.enabled") || reader.is_auto(bf16_path))) return;
  ImportSource source = reader.source(fp16 ? "fp16.enabled" : bf16_path);
  if (!fp16 && !bf16) source.comment = "neither fp16 nor bf16";
  add_precision(reader, zero, {fp16 ? "fp16" : bf16 ? "bf16" : "fp32", source}, training);
}

namespace {

// The words of DeepSpeed for a type.
//   source  DeepSpeed deepspeed/runtime/config.py, DtypeEnum.
std::string_view type_of(std::string_view word) {
  if (word.starts_with("torch.")) word.remove_prefix(6);
  if (word == "fp32" || word == "float32" || word == "float") return "fp32";
  if (word == "fp16" || word == "float16" || word == "half") return "fp16";
  return word == "bf16" || word == "bfloat16" ? "bf16" : "";
}

//   source  DeepSpeed deepspeed/runtime/engine.py, get_data_types.
FragmentEntry gradient_type(SettingsReader& reader, const ZeroSettings& zero, const std::string& precision) {
  constexpr const char* kType = "data_types.grad_accum_dtype";
  const std::string said = reader.text(kType);
  if (!said.empty() && type_of(said).empty())
    reader.error(kType, "unknown-name", in_quotes(said) + " is no type of gradients", "fp32, fp16 or bf16");
  if (reader.flag("fp32_allreduce", false))
    return text_entry("gradient_dtype", "fp32", reader.source("fp32_allreduce"));
  if (!said.empty()) return text_entry("gradient_dtype", type_of(said), reader.source(kType));
  ImportSource from = reader.source(kType);
  const bool wide = precision == "bf16" && zero.stage == 0;
  from.comment = wide ? "DeepSpeed accumulates bf16 in fp32 where ZeRO is off"
                      : "DeepSpeed accumulates in the type it computes in";
  return text_entry("gradient_dtype", wide ? "fp32" : precision, from);
}

// Masters and moments in the type of the weights, which ZeRO alone has.
void add_narrow_states(SettingsReader& reader, const ZeroSettings& zero, const std::string& precision,
                       std::vector<FragmentEntry>& training) {
  const std::string section = precision == "bf16" && reader.has("bfloat16") ? "bfloat16" : precision;
  const std::string masters = fmt::format("{}.{}_master_weights_and_grads", section, precision);
  const std::string moments = section + ".bf16_optimizer_states";
  const bool narrow = reader.flag(masters, false);
  const bool narrow_moments = precision == "bf16" && reader.flag(moments, false);
  if (narrow && zero.stage == 0)
    reader.error(masters, "needs-another-key", "is for ZeRO, and ZeRO is off", "zero_optimization.stage");
  if (narrow_moments && !narrow)
    reader.error(moments, "needs-another-key", "is for masters in bf16", masters);
  if (narrow) {
    training.push_back(flag_entry("master_weights", false, reader.source(masters)));
    reader.warning(masters, "not-modelled",
                   "the weights are stepped themselves: ZeRO's copy of 2 bytes is left out");
  }
  if (narrow_moments) training.push_back(text_entry("moment_dtype", "bf16", reader.source(moments)));
}

}  // namespace

void add_precision(SettingsReader& reader, const ZeroSettings& zero, const SaidPrecision& said,
                   std::vector<FragmentEntry>& training) {
  training.push_back(text_entry("precision", said.word, said.source));
  if (said.word == "fp32") {
    (void)reader.flag("fp32_allreduce");
    return;
  }
  training.push_back(gradient_type(reader, zero, said.word));
  add_narrow_states(reader, zero, said.word, training);
}

Batch read_batch(SettingsReader& reader, std::optional<std::int64_t> data,
                 std::optional<std::int64_t> default_steps) {
  constexpr std::int64_t kMost = 100'000;  // two of them times the GPUs of a request: 64 bits
  Batch batch{.global = reader.integer("train_batch_size", 1),
              .micro = reader.integer("train_micro_batch_size_per_gpu", 1, kMost),
              .data = data};
  const auto given_steps = reader.integer("gradient_accumulation_steps", 1, kMost);
  const bool left_open = reader.is_auto("gradient_accumulation_steps");
  const std::optional<std::int64_t> steps = given_steps || left_open ? given_steps : default_steps;
  batch.steps = steps;
  if (!steps) return batch;
  if (batch.micro && batch.data) {
    const std::int64_t product = *batch.micro * *steps * *batch.data;
    if (batch.global && *batch.global != product) {
      reader.error("train_batch_size", "contradiction",
                   fmt::format("{} is not micro-batch {} × accumulation {} × {} data ranks = {}",
                               *batch.global, *batch.micro, *steps, *batch.data, product));
    }
    batch.global = product;
  } else if (batch.micro && batch.global) {
    if (*batch.global % (*batch.micro * *steps) != 0) {
      reader.error("train_batch_size", "contradiction",
                   fmt::format("{} is no multiple of micro-batch {} × accumulation {}", *batch.global,
                               *batch.micro, *steps));
    } else {
      batch.data = *batch.global / (*batch.micro * *steps);
    }
  } else if (batch.global && batch.data) {
    if (*batch.global % (*batch.data * *steps) != 0) {
      reader.error("train_batch_size", "contradiction",
                   fmt::format("{} is no multiple of accumulation {} × {} data ranks", *batch.global, *steps,
                               *batch.data));
    } else {
      batch.micro = *batch.global / (*batch.data * *steps);
    }
  }
  return batch;
}

}  // namespace stagecraft
