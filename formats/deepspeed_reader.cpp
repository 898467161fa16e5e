#include "formats/deepspeed_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
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

bool is_neox(const YamlNode& root) {
  return std::ranges::any_of(root.entries, [](const YamlEntry& entry) {
    return entry.key == "num_layers" || entry.key == "num-layers" || entry.key == "pipe_parallel_size" ||
           entry.key == "pipe-parallel-size";
  });
}

}  // namespace stagecraft
