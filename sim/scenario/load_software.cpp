#include "sim/scenario/load_software.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "calibrate/profile/profile_reader.hpp"
#include "sim/plan/plan_checks.hpp"
#include "sim/scenario/device_modes.hpp"
#include "sim/scenario/load_training.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMostUnitParameters = 1'000'000'000'000;

struct SoftwarePreset {
  bool fused_kernels = true, gradient_accumulation_fusion = true;
  std::vector<std::string> attention_kernels;  // best first
  RecomputeModules selective = kCoreAttentionOnly;
  bool eager_fp32_logits = false;  // its loss casts the logits to fp32 where kernels are not fused
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;
  SoftwareRules rules;
};

std::vector<std::string> read_schedules(YamlMap& map) {
  std::vector<std::string> names = map.texts("schedules");
  for (const std::string& name : names)
    if (find_schedule(name) == nullptr)
      map.error("schedules", "unknown-name", in_quotes(name) + " is not a known schedule",
                "`stagecraft schedule --help` lists them");
  return names;
}

MemoryRules read_memory_rules(YamlMap& map) {
  MemoryRules rules;
  rules.fully_shard = map.boolean("fully_shard", false);
  if (map.has("communication_unit"))
    rules.communication_unit = map.integer("communication_unit", {.min = 1, .max = kMostUnitParameters});
  if (map.has("live_parameters"))
    rules.live_parameters = map.integer("live_parameters", {.min = 1, .max = kMostUnitParameters});
  rules.fresh_gradients = map.boolean("fresh_gradients", false);
  rules.step_messages = map.boolean("step_messages", false);
  rules.user_buffers = map.boolean("user_buffers", true);
  rules.loss_in_16_bit = map.boolean("loss_in_16_bit", false);
  rules.fp32_shards = map.boolean("fp32_shards", false);
  rules.eager_loss = map.boolean("eager_loss", false);
  rules.loss_parallel = map.boolean("loss_parallel", false);
  rules.gathered_inputs = map.boolean("gathered_inputs", false);
  rules.keeps_gathered = map.boolean("keeps_gathered", false);
  return rules;
}

SoftwareRules read_rules(YamlMap& map) {
  SoftwareRules rules;
  rules.unfused = load_late_fusions(map, "unfused");
  rules.recompute_stops_early = map.boolean("recompute_stops_early");
  rules.joins_clamps = map.boolean("joins_clamps", false);
  rules.repeats_flash = map.boolean("repeats_flash", false);
  rules.recompute_gathers_again = map.boolean("recompute_gathers_again", false);
  rules.gathers_matrices = map.boolean("gathers_matrices", false);
  if (map.has("piece_overhead")) rules.piece_overhead = read_duration(map, "piece_overhead").value;
  if (map.has("operator_overhead")) rules.operator_overhead = read_duration(map, "operator_overhead").value;
  if (map.has("kernel_overhead")) rules.kernel_overhead = read_duration(map, "kernel_overhead").value;
  rules.exchange_overhead = read_duration(map, "exchange_overhead");
  if (map.has("tensor_collective_overhead"))
    rules.tensor_collective_overhead = read_duration(map, "tensor_collective_overhead");
  rules.functional_collectives = map.boolean("functional_collectives", false);
  rules.aligned_gradients = map.boolean("aligned_gradients");
  rules.shards_fp8 = map.boolean("shards_fp8", false);
  rules.reduces_behind_backward = map.boolean("reduces_behind_backward", false);
  rules.memory = read_memory_rules(map);
  if (map.has("sharded_overlap_slowdown"))
    rules.sharded_overlap_slowdown =
        read_number(map, "sharded_overlap_slowdown", {.above = 1, .up_to = 2, .closed_below = true}).value;
  if (map.has("expert_overlap"))
    rules.expert_overlap =
        read_number(map, "expert_overlap", {.above = 0, .up_to = 1, .closed_below = true}).value;
  if (map.has("schedules")) rules.schedules = read_schedules(map);
  return rules;
}

SoftwarePreset read_preset(const YamlNode& root, Diagnostics& diagnostics) {
  YamlMap map(&root, "", root.where, diagnostics);
  SoftwarePreset preset;
  preset.fused_kernels = map.boolean("fused_kernels");
  preset.gradient_accumulation_fusion = map.boolean("gradient_accumulation_fusion", true);
  preset.attention_kernels = map.texts("attention_kernels");
  if (map.has("selective")) preset.selective = load_recompute_modules(map, "selective");
  preset.eager_fp32_logits = map.boolean("eager_fp32_logits", false);
  preset.fp8_recipe = map.choose("fp8_recipe", kFp8RecipeNames, Fp8Recipe::kDelayed);
  preset.rules = read_rules(map);
  (void)map.text("source");
  map.finish();
  return preset;
}

bool has_kernel(const HardwareProfile& profile, const std::string& name) {
  return std::ranges::any_of(profile.attention.kernels,
                             [&](const FlashKernel& kernel) { return kernel.name == name; });
}

// Of `attention_kernels`: what scaled_dot_product_attention runs on the device, where its profile says so.
constexpr std::string_view kSdpa = "sdpa";

// Has every device of the cluster a kernel of this name?
bool all_have_kernel(const Scenario& scenario, const std::string& name) {
  return has_kernel(*scenario.profile, name) &&
         std::ranges::all_of(scenario.group_profiles,
                             [&](const HardwareProfile& profile) { return has_kernel(profile, name); });
}

// nullopt after reporting.
std::optional<SoftwarePreset> preset_called(const std::string& name, YamlMap& options,
                                            const PresetPlaces& places) {
  const auto file = find_preset(options, "software", name, kSoftwarePreset, places);
  if (!file) return std::nullopt;
  const YamlNode* root = places.library.tree(*file, options.diagnostics());
  if (root == nullptr) return std::nullopt;
  return read_preset(*root, options.diagnostics());
}

// What jobs without pipeline and tensor ranks run under ZeRO 2 and 3: fp16 dates them before PyTorch's FSDP, a
// gated activation after the software that trained GPTs with it first.
const std::string& fully_sharded_software(const DefaultSoftware& usual, const Scenario& scenario) {
  if (scenario.training.precision == Precision::kFp16 && !usual.sharded_fp16.empty())
    return usual.sharded_fp16;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool gated = model != nullptr && is_gated(model->activation);
  return gated && !usual.sharded_gated.empty() ? usual.sharded_gated : usual.sharded;
}

// The profile's default software: a sharded one where weights or gradients are sharded. Those without
// pipeline and tensor ranks list no schedule.
std::string default_software(const HardwareProfile& profile, const Scenario& scenario, YamlMap& options,
                             const PresetPlaces& places) {
  const DefaultSoftware& usual = profile.software;
  const ParallelSpec& parallel = scenario.parallelism;
  if (zero_stage_in_effect(scenario) < 2) return usual.replicated;
  if (parallel.pipeline == 1 && parallel.tensor == 1) return fully_sharded_software(usual, scenario);
  for (const std::string& name : {usual.sharded_gated, usual.sharded}) {
    if (name.empty()) continue;
    const std::optional<SoftwarePreset> found = preset_called(name, options, places);
    if (!found || found->rules.has_orders()) return name;
  }
  return usual.replicated;
}

// One software runs on all devices; with several devices that of the first.
void choose_software(YamlMap& options, const PresetPlaces& places, Scenario& scenario) {
  std::string& software = scenario.options.software;
  const HardwareProfile& first = *scenario.profile;
  software = default_software(first, scenario, options, places);
  for (const HardwareProfile& profile : scenario.group_profiles) {
    const std::string other = default_software(profile, scenario, options, places);
    if (other == software) continue;
    scenario.warnings.push_back(
        {.severity = Severity::kWarning,
         .code = "assumed",
         .where = options.where_of("software"),
         .path = options.path_of("software"),
         .message = fmt::format("is not given: all devices run {}, as profile {} has it; {} has {}", software,
                                first.name, profile.name, other),
         .hint = "name the software that the job runs"});
    return;
  }
}

// What the profiles of all devices have in graphs, so that the order of the groups does not count.
void choose_graphs(YamlMap& options, Scenario& scenario) {
  const auto graphs = [](const HardwareProfile* profile) { return profile->software.cuda_graphs; };
  const std::vector<const HardwareProfile*> profiles = profiles_of(scenario);
  const auto [least, most] = std::ranges::minmax(profiles, {}, graphs);
  scenario.options.cuda_graphs = graphs(least);
  if (graphs(least) == graphs(most)) return;
  const auto word = [&](const HardwareProfile* profile) {
    return kCudaGraphsNames[static_cast<std::size_t>(graphs(profile))];
  };
  scenario.warnings.push_back(
      {.severity = Severity::kWarning,
       .code = "assumed",
       .where = options.where_of("cuda_graphs"),
       .path = options.path_of("cuda_graphs"),
       .message = fmt::format("is not given: {} on all devices, as profile {} has it; {} has {}", word(least),
                              least->name, most->name, word(most)),
       .hint = "say what the host launches as one"});
}

// The modules that leave about as much of a layer as every second product.
RecomputeModules near_every_second_product(const TransformerSpec& model) {
  RecomputeModules near;
  if (model.has_norms_before()) near = near | RecomputeModules{RecomputeModule::kLayerNorm};
  if (model.latent_attention) near = near | RecomputeModules{RecomputeModule::kLatentUp};
  if (model.has_dense_layers()) near = near | RecomputeModules{RecomputeModule::kMlp};
  if (model.experts) near = near | RecomputeModules{RecomputeModule::kMoe};
  return near;
}

// What the word selective names in a model: every second product is not modelled for all layers.
RecomputeModules selective_in(const Scenario& scenario, RecomputeModules usual) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || !usual.has(RecomputeModule::kEverySecondProduct)) return usual;
  const Attention attention = scenario.training.attention;
  if (plan_checks::without_second_products(*model, attention).empty()) return usual;
  return attention == Attention::kFlash ? near_every_second_product(*model) : kCoreAttentionOnly;
}

}  // namespace

void check_software(YamlMap& options, const PresetPlaces& places, const OptionsSpec& spec) {
  if (!spec.software.empty()) (void)preset_called(spec.software, options, places);
}

void apply_software(YamlMap& options, const PresetPlaces& places, Scenario& scenario) {
  if (!scenario.profile) return;
  OptionsSpec& spec = scenario.options;
  if (spec.software.empty()) choose_software(options, places, scenario);
  const std::optional<SoftwarePreset> found = preset_called(spec.software, options, places);
  if (!found) return;
  const SoftwarePreset& preset = *found;
  if (!options.has("fused_kernels")) spec.fused_kernels = preset.fused_kernels;
  if (!options.has("gradient_accumulation_fusion"))
    spec.gradient_accumulation_fusion = preset.gradient_accumulation_fusion;
  if (!scenario.origins.contains("options.memory.fp32_logits"))
    spec.memory.fp32_logits = (preset.eager_fp32_logits || scenario.training.autocast) && !spec.fused_kernels;
  if (!options.has("fp8_recipe")) spec.fp8_recipe = preset.fp8_recipe;
  spec.rules = preset.rules;
  spec.selective = selective_in(scenario, preset.selective);
  if (!scenario.origins.contains("training.recompute.modules"))
    scenario.training.recompute.modules = spec.recompute(scenario.training.recompute.granularity).modules;
  if (!options.has("cuda_graphs") && preset.rules.operator_overhead > Duration::zero())
    choose_graphs(options, scenario);
  if (options.has("attention_kernel")) return;
  for (const std::string& wanted : preset.attention_kernels) {
    const std::string& name = wanted == kSdpa ? scenario.profile->attention.sdpa : wanted;
    if (!all_have_kernel(scenario, name)) continue;
    spec.attention_kernel = name;
    return;
  }
}

}  // namespace stagecraft
