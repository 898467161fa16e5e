#include "sim/scenario/load_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "models/load_blocks.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

namespace {

// Bounds that no cluster reaches: they keep a typing mistake from becoming an endless run.
constexpr std::int64_t kMaxDegree = 1'000'000;
constexpr std::int64_t kMaxSamples = 1'000'000'000;
constexpr std::int64_t kMaxBucketParameters = 1'000'000'000'000;

// Consecutive iterations of an order without a flush. The first fills and the last drains; the interval
// between their ends is an iteration of the steady state.
constexpr int kLeastSteadyIterations = 3;
constexpr int kSteadyIterations = 4;
constexpr int kMostIterations = 1000;

constexpr std::string_view kOptimizerNames[] = {"adam", "adamw"};  // the decay of AdamW costs nothing more

int degree(YamlMap& map, std::string_view key) {
  return static_cast<int>(map.integer(key, {.min = 1, .max = kMaxDegree, .fallback = 1}));
}

void load_order(YamlMap& map, ParallelSpec& spec) {
  if (!map.has("order")) return;
  const ErrorWatch watch(map.diagnostics());
  const std::vector<std::string> words = map.texts("order");
  if (!watch.clean()) return;
  const std::vector<std::string> names = to_strings(kAxisNames);
  bool valid = words.size() == kAxisCount;
  for (std::size_t i = 0; valid && i < words.size(); ++i) {
    const auto axis = std::ranges::find(names, words[i]);
    valid = axis != names.end() && std::ranges::count(words, words[i]) == 1;
    if (valid) spec.order[i] = static_cast<Axis>(axis - names.begin());
  }
  if (valid) return;
  spec.order = ParallelSpec{}.order;
  map.error("order", "bad-order", fmt::format("{} is not an order of the axes", in_quotes(join(words, ", "))),
            fmt::format("name each of {} once, innermost first", join(names, ", ")));
}

// There are too many schedules to list: suggests the nearest name, or those with this prefix.
std::string schedule_hint(const std::string& name, const std::vector<std::string>& known) {
  if (const auto nearest = nearest_name(name, known))
    return fmt::format("did you mean {}?", in_quotes(*nearest));
  std::vector<std::string> begun;
  for (const std::string& one : known)
    if (!name.empty() && one.starts_with(name)) begun.push_back(in_quotes(one));
  return begun.empty() ? "`stagecraft schedule --help` lists them"
                       : fmt::format("did you mean {}?", join(begun, " or "));
}

// `map` and `key` are where the name stands.
std::string read_schedule_name(YamlMap& map, std::string_view key) {
  std::vector<std::string> known;
  for (const ScheduleKind& kind : schedule_kinds()) known.emplace_back(kind.name);
  map.accepts(key, {.kind = KeyForm::Kind::kChoice, .words = known});
  const ErrorWatch watch(map.diagnostics());
  std::string name = map.text(key);
  if (!watch.clean()) return name;
  if (find_schedule(name) != nullptr) return name;
  map.error(key, "unknown-name", fmt::format("{} is not a known schedule", in_quotes(name)),
            schedule_hint(name, known));
  return name;  // unknown schedule: its demands on other keys are not checked
}

bool drains(const ScheduleSpec& spec) {
  const ScheduleKind* kind = find_schedule(spec.name);
  return kind == nullptr || kind->flush;
}

// End of iterations, and the number of simulated ones.
void load_steps(YamlMap& map, ScheduleSpec& spec) {
  spec.global_step = map.boolean("global_step", spec.global_step);
  if (spec.global_step && !drains(spec))
    map.error("global_step", "contradiction",
              fmt::format("{} never drains, so no step waits for all ranks", spec.name),
              "use false, or leave it out");
  if (map.has("rollback")) {
    spec.rollback = map.number("rollback", {.min = 0, .max = 1, .fallback = 0.0});
    if (spec.global_step || !drains(spec))
      map.error("rollback", "contradiction",
                spec.global_step ? "a step that waits for all ranks is never taken back"
                                 : fmt::format("{} looks at no norm over all ranks", spec.name),
                "leave it out, or use global_step: false with a schedule that drains");
  }
  const int least = spec.global_step ? 1 : kLeastSteadyIterations;
  spec.iterations = static_cast<int>(
      map.integer("iterations",
                  {.min = 1, .max = kMostIterations, .fallback = spec.global_step ? 1 : kSteadyIterations}));
  if (spec.iterations < least)
    map.error("iterations", "out-of-range",
              fmt::format("{} in a row do not show how one follows another", spec.iterations),
              fmt::format("{} or more do; left out it is {}", least, kSteadyIterations));
  if (map.has("fused_share"))
    spec.fused_share = map.number("fused_share", {.min = 0.5, .max = 1, .fallback = 1.0});
}

// Accumulating in a type that the weights do not have is no recipe of any framework we know.
void check_gradient(YamlMap& map, const TrainingSpec& spec) {
  const bool half = spec.gradient == Precision::kFp16 || spec.gradient == Precision::kBf16;
  if (half && spec.autocast)
    return map.error("gradient_dtype", "contradiction",
                     "gradients of fp32 weights are fp32 (training.autocast)", "use fp32, or leave it out");
  if (!half || spec.gradient == spec.precision) return;
  if (spec.precision == Precision::kFp8 && spec.gradient == Precision::kBf16) return;
  const std::string_view precision = kPrecisionNames[static_cast<std::size_t>(spec.precision)];
  const std::string_view legal = spec.precision == Precision::kFp8 ? "bf16" : precision;
  map.error("gradient_dtype", "contradiction",
            fmt::format("{} gradients do not go with {} training",
                        kPrecisionNames[static_cast<std::size_t>(spec.gradient)], precision),
            spec.precision == Precision::kFp32 ? "use fp32" : fmt::format("use fp32 or {}", legal));
}

// none | selective | full, or {granularity, modules | method, layers}.
RecomputeSpec load_recompute(YamlMap& training) {
  RecomputeSpec spec;
  const YamlNode* node = training.get("recompute");
  if (node == nullptr || node->kind != YamlNode::Kind::kMap) {
    spec.granularity = training.choose("recompute", kRecomputeNames, Recompute::kNone);
    return spec;
  }
  YamlMap map = training.map("recompute");
  const ErrorWatch watch(map.diagnostics());
  if (!map.has("granularity"))
    map.error("granularity", "missing-key", "is required, but not given",
              "one of " + join(to_strings(kRecomputeNames), ", "));
  else
    spec.granularity = map.choose("granularity", kRecomputeNames, Recompute::kNone);
  const bool known = watch.clean();
  const auto belongs_to = [&](std::string_view key, Recompute granularity) {
    if (!map.has(key)) return false;
    if (!known || spec.granularity == granularity) return true;
    const std::string_view word = kRecomputeNames[static_cast<std::size_t>(granularity)];
    map.error(key, "contradiction",
              fmt::format("is for {} recompute, and the granularity is {}", word,
                          kRecomputeNames[static_cast<std::size_t>(spec.granularity)]),
              fmt::format("leave it out, or use granularity: {}", word));
    return true;
  };
  if (belongs_to("modules", Recompute::kSelective)) spec.modules = load_recompute_modules(map, "modules");
  if (belongs_to("method", Recompute::kFull))
    spec.method = map.choose("method", kRecomputeMethodNames, RecomputeMethod::kUniform);
  if (belongs_to("layers", Recompute::kFull))
    spec.layers = map.integer("layers", {.min = 1, .max = kMaxDegree, .fallback = 1});
  map.finish();
  return spec;
}

// nullopt where it is not given and something else decides.
std::optional<bool> given_boolean(YamlMap& map, std::string_view key) {
  return map.has(key) ? std::optional(map.boolean(key)) : std::nullopt;
}

constexpr std::int64_t kMostLossChunks = 1024;

// Memory of the software: `options.memory`.
SoftwareMemory load_software_memory(YamlMap& options) {
  YamlMap map = options.map("memory");
  SoftwareMemory spec;
  spec.fused_loss = map.boolean("fused_loss", false);
  spec.compiled_loss = map.boolean("compiled_loss", false);
  spec.fp32_logits = map.boolean("fp32_logits", false);
  spec.loss_chunks = map.integer("loss_chunks", {.min = 1, .max = kMostLossChunks, .fallback = 1});
  spec.gathered_logits = map.boolean("gathered_logits", false);
  spec.keep_outputs = map.boolean("keep_outputs", false);
  spec.gradient_placeholders = map.boolean("gradient_placeholders", false);
  spec.whole_gradients = given_boolean(map, "whole_gradients");
  spec.bucket_copies = map.boolean("bucket_copies", false);
  if (map.has("fragmentation"))
    spec.fragmentation = map.number("fragmentation", {.min = 0, .max = 1, .fallback = 0.0});
  map.finish();
  return spec;
}

// Schedules that support this number of chunks and ranks, with enough micro-batches (their number is unknown
// here).
std::vector<std::string> orders_for(const ParallelSpec& parallelism) {
  constexpr int kEnough = 4;  // micro-batches per rank: whole groups, and as many as schedules fold
  const PipelineShape shape{.ranks = parallelism.pipeline,
                            .micro_batches = kEnough * parallelism.pipeline,
                            .chunks = parallelism.virtual_stages};
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds())
    if (kind.chunked && shape.ranks > 1 && !kind.constraint(shape)) names.emplace_back(kind.name);
  return names;
}

// A list of names, such as `modules: [core_attn, mlp]`; each unknown one is reported where it stands.
template <class Value>
EnumSet<Value> load_set(YamlMap& map, const char* key, std::span<const std::string_view> known,
                        std::string_view what_is_wrong) {
  const std::vector<std::string> words = map.texts(key), names = to_strings(known);
  EnumSet<Value> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto at = std::ranges::find(names, words[i]);
    if (at != names.end()) {
      values = values | EnumSet{static_cast<Value>(at - names.begin())};
      continue;
    }
    const auto& items = map.get(key)->items;
    map.diagnostics().error({.code = "unknown-name",
                             .where = i < items.size() ? items[i].where : map.where_of(key),
                             .path = fmt::format("{}.{}", map.path_of(key), i),
                             .message = fmt::format("{} {}", in_quotes(words[i]), what_is_wrong),
                             .hint = suggest(words[i], names)});
  }
  return values;
}

}  // namespace

RecomputeModules load_recompute_modules(YamlMap& map, const char* key) {
  const ErrorWatch watch(map.diagnostics());
  const auto modules =
      load_set<RecomputeModule>(map, key, kRecomputeModuleNames, "is not a module that can be recomputed");
  if (watch.clean() && modules.empty())
    map.error(key, "empty-list", "names no module", "use granularity: none to recompute nothing");
  return modules.empty() ? kCoreAttentionOnly : modules;
}

ParallelSpec load_parallelism(YamlMap& root) {
  YamlMap map = root.map("parallelism");
  ParallelSpec spec;
  spec.tensor = degree(map, "tensor");
  spec.pipeline = degree(map, "pipeline");
  if (map.has("data")) spec.data = degree(map, "data");
  spec.context = degree(map, "context");
  spec.context_exchange = map.choose("context_exchange", kContextExchangeNames, ContextExchange::kRing);
  spec.expert = degree(map, "expert");
  spec.expert_tensor = degree(map, "expert_tensor");
  spec.virtual_stages = degree(map, "virtual_stages");
  spec.stage_layers = map.integers("stage_layers", {.min = 0, .max = kMaxDegree});
  spec.embedding_as_layer = map.boolean("embedding_as_layer", false);
  spec.loss_as_layer = map.boolean("loss_as_layer", false);
  spec.sequence_parallel = map.boolean("sequence_parallel", false);
  spec.replicated_embedding = map.boolean("replicated_embedding", false);
  spec.zero_stage = static_cast<int>(map.integer("zero_stage", {.min = 0, .max = 3, .fallback = 0}));
  if (map.has("zero_group")) spec.zero_group = degree(map, "zero_group");
  load_order(map, spec);
  map.finish();
  return spec;
}

ScheduleSpec load_schedule(YamlMap& root) {
  ScheduleSpec spec;
  const YamlNode* node = root.get("schedule");
  if (node == nullptr) return spec;
  if (node->kind == YamlNode::Kind::kScalar) {
    spec.name = read_schedule_name(root, "schedule");
    spec.global_step = drains(spec);
    spec.iterations = spec.global_step ? 1 : kSteadyIterations;
    return spec;
  }
  YamlMap map = root.map("schedule");
  if (map.has("file")) {
    (void)map.text("file");  // read by load_order()
    spec.name = "custom";
    for (const char* key : {"name", "micro_batch_group"})
      if (map.has(key))
        map.error(key, "contradiction", "does not go with file, which gives the whole order",
                  "leave one of them out");
  } else if (map.present()) {
    spec.name = read_schedule_name(map, "name");
  }
  spec.micro_batch_group =
      static_cast<int>(map.integer("micro_batch_group", {.min = 0, .max = kMaxDegree, .fallback = 0}));
  spec.global_step = drains(spec);
  load_steps(map, spec);
  map.finish();
  return spec;
}

SixteenBitLayers load_sixteen_bit_layers(YamlMap& training) {
  YamlMap map = training.map("sixteen_bit_layers");
  SixteenBitLayers layers;
  layers.first = map.integer("first", {.min = 0, .max = kMaxLayers, .fallback = 0});
  layers.last = map.integer("last", {.min = 0, .max = kMaxLayers, .fallback = 0});
  map.finish();
  return layers;
}

// A recipe of fp8 in the place of a precision is told where it belongs.
Precision load_precision(YamlMap& training) {
  constexpr const char* kKey = "precision";
  const YamlNode* given = training.get(kKey);
  const std::string word = given == nullptr ? "" : given->text == "fp4" ? "nvfp4" : given->text;
  if (std::ranges::find(kFp8RecipeNames, word) == std::end(kFp8RecipeNames))
    return training.choose(kKey, kPrecisionNames, Precision::kBf16);
  training.error(kKey, "unknown-name", fmt::format("'{}' is a recipe of fp8", given->text),
                 fmt::format("write fp8, and options.fp8_recipe: {}", word));
  return Precision::kFp8;
}

// Casts to 16 bit alone: to Transformer Engine's own autocast fp8 is a precision.
bool load_autocast(YamlMap& training, Precision precision) {
  const bool autocast = training.boolean("autocast", false);
  if (!autocast || precision == Precision::kBf16 || precision == Precision::kFp16) return autocast;
  training.error(
      "autocast", "contradiction",
      fmt::format("{} weights are not cast to 16 bit", kPrecisionNames[static_cast<std::size_t>(precision)]),
      "use precision: bf16 or fp16, or leave it out");
  return false;
}

TrainingSpec load_training(YamlMap& root) {
  YamlMap map = root.map("training");
  TrainingSpec spec;
  spec.global_batch_size = map.integer("global_batch_size", {.min = 1, .max = kMaxSamples});
  spec.micro_batch_size = map.integer("micro_batch_size", {.min = 1, .max = kMaxSamples, .fallback = 1});
  spec.sequence_length = map.has("sequence_length")
                             ? map.integer("sequence_length", {.min = 1, .max = kMaxSamples, .fallback = 1})
                             : 0;
  spec.precision = load_precision(map);
  spec.sixteen_bit_layers = load_sixteen_bit_layers(map);
  spec.autocast = load_autocast(map, spec.precision);
  spec.recompute = load_recompute(map);
  spec.attention = map.choose("attention", kAttentionNames, Attention::kFlash);
  (void)map.choice("optimizer", to_strings(kOptimizerNames), 0);
  const bool fp16 = spec.precision == Precision::kFp16 && !spec.autocast;
  spec.gradient = map.choose("gradient_dtype", std::span(kPrecisionNames).first(3),
                             fp16 ? Precision::kFp16 : Precision::kFp32);
  check_gradient(map, spec);
  spec.moment = map.choose("moment_dtype", kPrecisionNames, Precision::kFp32);
  spec.master_weights = map.boolean("master_weights", true);
  spec.master_remainders = map.boolean("master_remainders", spec.moment != Precision::kFp32);
  map.finish();
  return spec;
}

OverlapSpec load_overlap(YamlMap& root) {
  YamlMap map = root.map("overlap");
  OverlapSpec spec;
  for (const auto& [name, overlaps] : kOverlapKeys) spec.*overlaps = map.boolean(name, spec.*overlaps);
  map.finish();
  return spec;
}

LateFusions load_late_fusions(YamlMap& map, const char* key) {
  return load_set<LateFusion>(map, key, kLateFusionNames, "is no operation that is fused by itself");
}

// What runs fused whatever else does. Said to be both, an operation is a mistake.
LateFusions load_fused(YamlMap& map, const LateFusions& unfused) {
  const LateFusions fused = load_late_fusions(map, "fused");
  for (std::size_t i = 0; i < kLateFusionNames.size(); ++i) {
    const auto operation = static_cast<LateFusion>(i);
    if (fused.has(operation) && unfused.has(operation))
      map.error("fused", "contradiction",
                fmt::format("{} is in options.unfused as well", kLateFusionNames[i]), "name it once");
  }
  return fused;
}

OptionsSpec load_options(YamlMap& root) {
  YamlMap map = root.map("options");
  OptionsSpec spec;
  spec.scatter_gather = map.boolean("scatter_gather", true);
  spec.fused_kernels = map.boolean("fused_kernels", true);
  spec.unfused = load_late_fusions(map, "unfused");
  spec.fused = load_fused(map, spec.unfused);
  spec.gradient_accumulation_fusion = map.boolean("gradient_accumulation_fusion", true);
  spec.attention_kernel = map.text("attention_kernel", "");
  spec.software = map.text("software", "");
  if (map.has("bucket_parameters"))
    spec.bucket_parameters =
        map.integer("bucket_parameters", {.min = 1, .max = kMaxBucketParameters, .fallback = 1});
  spec.reshard_after_forward = given_boolean(map, "reshard_after_forward");
  spec.expert_dispatcher =
      map.choose("expert_dispatcher", kExpertDispatcherNames, ExpertDispatcher::kAllToAll);
  spec.cuda_graphs = map.choose("cuda_graphs", kCudaGraphsNames, CudaGraphs::kNone);
  spec.fp8_recipe = map.choose("fp8_recipe", kFp8RecipeNames, Fp8Recipe::kDelayed);
  spec.fp8_parameters = given_boolean(map, "fp8_parameters");
  spec.fp8_dispatch = map.boolean("fp8_dispatch", false);
  spec.fp8_attention = map.choose("fp8_attention", kFp8AttentionNames, Fp8Attention::kNone);
  spec.fused_experts = map.boolean("fused_experts", false);
  spec.foreach_step = map.boolean("foreach_step", false);
  spec.memory = load_software_memory(map);
  map.finish();
  return spec;
}

OffloadSpec load_offload(YamlMap& root) {
  YamlMap map = root.map("offload");
  OffloadSpec spec;
  for (const auto& [name, share] : kOffloadKeys)
    spec.*share = map.number(name, {.min = 0, .max = 1, .fallback = spec.*share});
  map.finish();
  return spec;
}

std::optional<int> unsaid_chunks(YamlMap& root, const ScheduleSpec& schedule) {
  const ScheduleKind* kind = find_schedule(schedule.name);
  const YamlNode* section = root.get("parallelism");
  const bool mapping = section != nullptr && section->kind == YamlNode::Kind::kMap;
  if (kind == nullptr || (section != nullptr && (!mapping || section->find("virtual_stages") != nullptr)))
    return std::nullopt;
  return default_chunks(*kind);
}

void check_schedule(YamlMap& root, const ScheduleSpec& schedule, const ParallelSpec& parallelism) {
  const ScheduleKind* kind = find_schedule(schedule.name);
  if (kind == nullptr || kind->chunked || parallelism.virtual_stages == 1) return;
  const std::vector<std::string> takes = orders_for(parallelism);
  const std::string others = takes.empty() ? "" : ", or use one of " + join(takes, ", ");
  root.map("parallelism")
      .error(
          "virtual_stages", "contradiction",
          fmt::format("{} chunks a rank, but schedule {} runs 1", parallelism.virtual_stages, schedule.name),
          "leave virtual_stages out" + others);
}

}  // namespace stagecraft
