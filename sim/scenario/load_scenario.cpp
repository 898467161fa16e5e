#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/plan/plan_checks.hpp"
#include "sim/scenario/assertions.hpp"
#include "sim/scenario/device_modes.hpp"
#include "sim/scenario/known_keys.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/load_failures.hpp"
#include "sim/scenario/load_faults.hpp"
#include "sim/scenario/load_jobs.hpp"
#include "sim/scenario/load_machine.hpp"
#include "sim/scenario/load_network.hpp"
#include "sim/scenario/load_order.hpp"
#include "sim/scenario/load_software.hpp"
#include "sim/scenario/load_training.hpp"
#include "sim/scenario/no_effect.hpp"
#include "sim/scenario/other_device.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

namespace {

namespace fs = std::filesystem;

class Reader {
 public:
  Reader(const ScenarioTree& tree, Library& library, Diagnostics& diagnostics)
      : tree_(tree),
        places_{.library = library, .folder = tree.folder},
        diagnostics_(diagnostics),
        watch_(diagnostics),
        first_(diagnostics.items().size()) {
    scenario_.source = tree.source;
    root_.emplace(&tree.root, "", tree.root.where, diagnostics, &scenario_.origins);
  }

  std::optional<Scenario> read();

 private:
  void read_head();
  void read_machine();
  void read_jobs();
  void settle_sequence_parallel();
  void settle_sixteen_bit_layers();
  void assume_sequence_length(YamlMap& training, std::int64_t most);
  void check_sequence_length();
  void check_with_mistakes();
  [[nodiscard]] std::vector<Diagnostic> mistakes() const;
  void read_profile();
  void read_software();
  void choose_attention_kernel();
  void choose_attention_kernel(HardwareProfile& profile);
  void keep_warnings();

  const ScenarioTree& tree_;
  PresetPlaces places_;
  Diagnostics& diagnostics_;
  ErrorWatch watch_;
  std::size_t first_;  // of the diagnostics that are reported while this reads
  Scenario scenario_;
  std::optional<YamlMap> root_;
  std::optional<ClusterSpec> counted_;  // of which at least the nodes are known
  bool model_ok_ = false;
  // Diagnostics of the other jobs' scenarios, which say nothing of this one's values.
  std::size_t first_of_jobs_ = 0, end_of_jobs_ = 0;
};

void Reader::read_head() {
  const std::int64_t schema = root_->integer("stagecraft");
  if (watch_.clean() && schema != 1)
    root_->error("stagecraft", "unknown-schema", fmt::format("schema {} is not known", schema),
                 "this program reads schema 1");
  scenario_.name = root_->text("name", stem_of(scenario_.source));
  (void)root_->get("search");  // read by sim/search/ only
  root_->accepts("search", {.kind = KeyForm::Kind::kMap});
}

void Reader::read_machine() {
  if (auto model = load_model_section(*root_, places_, scenario_.origins, scenario_.model_assumptions)) {
    scenario_.model = *std::move(model);
    model_ok_ = true;
  }
  ClusterSection cluster = load_cluster_section(*root_, places_, scenario_.origins);
  scenario_.cluster = std::move(cluster.whole);
  counted_ = std::move(cluster.counted);
  const bool stages = std::holds_alternative<StagesSpec>(scenario_.model);
  if (model_ok_ && !stages && !root_->has("cluster"))
    root_->error("cluster", "missing-key", "is required, but not given",
                 "only models of family stages run without a cluster");
}

void Reader::read_jobs() {
  scenario_.parallelism = load_parallelism(*root_);
  if (model_ok_) settle_sequence_parallel();
  scenario_.training = load_training(*root_);
  if (model_ok_) check_sequence_length();
  if (model_ok_) settle_sixteen_bit_layers();
  scenario_.schedule = load_schedule(*root_);
  scenario_.order = load_order(*root_, places_);
  if (const auto chunks = unsaid_chunks(*root_, scenario_.schedule)) {
    scenario_.parallelism.virtual_stages = *chunks;
    if (auto* stages = std::get_if<StagesSpec>(&scenario_.model))
      *stages = in_parts(*std::move(stages), *chunks);
  }
  check_schedule(*root_, scenario_.schedule, scenario_.parallelism);
  scenario_.overlap = load_overlap(*root_);
  scenario_.options = load_options(*root_);
  scenario_.offload = load_offload(*root_);
  scenario_.network =
      load_network(*root_, scenario_.cluster ? &*scenario_.cluster : nullptr, scenario_.origins);
  scenario_.failures = load_failures(*root_, {.cluster = scenario_.cluster ? &*scenario_.cluster : nullptr,
                                              .places = places_,
                                              .origins = scenario_.origins,
                                              .assumed = scenario_.assumed});
  const ErrorWatch placing(diagnostics_);
  first_of_jobs_ = diagnostics_.items().size();
  const bool gpus_known = load_jobs(*root_, scenario_, places_);
  end_of_jobs_ = diagnostics_.items().size();
  if (!gpus_known) counted_.reset();
  if (scenario_.fabric) counted_ = scenario_.cluster;
  if (placing.clean())
    scenario_.faults = load_faults(*root_, scenario_);
  else
    (void)root_->get("faults");  // of nodes that are not known
  scenario_.assertions = load_assertions(*root_);
}

// Experts beside tensor ranks need it, so who says nothing means it.
void Reader::settle_sequence_parallel() {
  const auto* model = std::get_if<TransformerSpec>(&scenario_.model);
  ParallelSpec& parallel = scenario_.parallelism;
  if (model == nullptr || !model->experts || parallel.tensor == 1) return;
  YamlMap section = root_->map("parallelism");
  if (section.has("sequence_parallel")) return;
  parallel.sequence_parallel = true;
  section.warning("sequence_parallel", "assumed",
                  fmt::format("is not given: true, as experts beside tensor {} need it", parallel.tensor),
                  "write it");
}

// Layers of the model that stay in 16 bit, where others run in fp8.
void Reader::settle_sixteen_bit_layers() {
  auto* model = std::get_if<TransformerSpec>(&scenario_.model);
  const SixteenBitLayers& layers = scenario_.training.sixteen_bit_layers;
  if (model == nullptr || scenario_.training.precision != Precision::kFp8) return;
  if (layers.first + layers.last <= model->layers) {
    model->sixteen_bit = layers;
    return;
  }
  root_->map("training")
      .error("sixteen_bit_layers", "out-of-range",
             fmt::format("the first {} and the last {} are more than model.layers = {}", layers.first,
                         layers.last, model->layers),
             "training.precision: bf16 keeps all of them in 16 bit");
}

// The longest that the model is made for; where it does not say, what most of its family were trained with.
//   source  Brown et al. (arXiv 2005.14165), section 2.1; the code of Touvron et al. (arXiv 2302.13971).
void Reader::assume_sequence_length(YamlMap& training, std::int64_t most) {
  constexpr std::int64_t kUsual = 2048;
  scenario_.training.sequence_length = most > 0 ? most : kUsual;
  if (most > 0 && !is_hf_model(*root_)) return;
  training.warning(
      "sequence_length", "assumed",
      most > 0 ? fmt::format("is not given: {} tokens, the longest that the model's file allows", most)
               : fmt::format("is not given, nor is model.max_sequence_length: {} tokens, as of GPT and "
                             "the first Llamas",
                             kUsual),
      "give the length that the job trains with");
}

// Fills in the defaults, and says when the sequence is longer than the model was made for. Learned positions
// are as many as the model says, or else as the sequence needs.
void Reader::check_sequence_length() {
  auto* model = std::get_if<TransformerSpec>(&scenario_.model);
  if (model == nullptr) return;
  std::int64_t& length = scenario_.training.sequence_length;
  const std::int64_t most = model->max_sequence_length;
  const YamlNode* section = root_->get("training");
  if (section != nullptr && section->kind != YamlNode::Kind::kMap) return;  // already reported
  YamlMap training = root_->map("training");
  if (!training.has("sequence_length")) assume_sequence_length(training, most);
  if (most == 0 && model->position == Position::kLearned) model->max_sequence_length = length;
  if (most == 0 || length <= most) return;
  std::string message =
      fmt::format("{} tokens are more than the model's max_sequence_length = {}", length, most);
  if (model->position == Position::kLearned) {
    training.error(
        "sequence_length", "too-long", std::move(message),
        fmt::format("learned positions end there: use at most {}, or raise model.max_sequence_length", most));
    return;
  }
  scenario_.warnings.push_back({.severity = Severity::kWarning,
                                .code = "too-long",
                                .where = training.where_of("sequence_length"),
                                .path = training.path_of("sequence_length"),
                                .message = std::move(message),
                                .hint = "rotary positions go on, but the model was not trained there"});
}

// What was refused of this scenario's own values.
std::vector<Diagnostic> Reader::mistakes() const {
  const std::span<const Diagnostic> all = diagnostics_.items();
  std::vector<Diagnostic> own(all.begin() + static_cast<std::ptrdiff_t>(first_),
                              all.begin() + static_cast<std::ptrdiff_t>(first_of_jobs_));
  own.insert(own.end(), all.begin() + static_cast<std::ptrdiff_t>(end_of_jobs_), all.end());
  if (!model_ok_) own.push_back({.path = "model"});
  if (scenario_.cluster && !counted_) own.push_back({.path = "cluster"});
  return own;
}

// A scenario with mistakes never reaches resolve(), nor the checks of a job. They run here, on what was not
// refused, so that all mistakes are reported at once.
void Reader::check_with_mistakes() {
  if (watch_.clean()) return;
  const PlanRequest request{.model = scenario_.model,
                            .cluster = counted_ ? &*counted_ : nullptr,
                            .parallelism = scenario_.parallelism,
                            .training = scenario_.training,
                            .origins = scenario_.origins,
                            .fallback = {.file = scenario_.source},
                            .mistakes = mistakes()};
  if (!tree_.open_plan) (void)resolve(request, diagnostics_);
  if (plan_checks::Reporter(request, diagnostics_).knows({"profile", "training.precision"}))
    check_device_modes(scenario_, diagnostics_);
}

// The largest file: read last.
void Reader::read_profile() {
  const bool stages = std::holds_alternative<StagesSpec>(scenario_.model);
  const bool required = model_ok_ && !stages && scenario_.cluster && tree_.needs_profile;
  const bool mixed = required && has_several_devices(*scenario_.cluster);
  const auto file =
      mixed ? std::nullopt
            : find_profile(*root_, scenario_.cluster ? &*scenario_.cluster : nullptr, required, places_);
  if (mixed) scenario_.group_profiles = load_group_profiles(*root_, *scenario_.cluster, places_);
  root_->finish();
  const HardwareProfile* profile = file ? places_.library.profile(*file, diagnostics_) : nullptr;
  if (mixed && !scenario_.group_profiles.empty()) profile = &scenario_.group_profiles.front();
  if (profile != nullptr) scenario_.profile = *profile;
  for (Diagnostic& warning : other_devices(scenario_)) scenario_.warnings.push_back(std::move(warning));
  if (!stages) read_software();
  choose_attention_kernel();
}

void Reader::read_software() {
  const YamlNode* section = root_->get("options");
  if (section != nullptr && section->kind != YamlNode::Kind::kMap) return;  // already reported
  YamlMap options = root_->map("options");
  if (watch_.clean())
    apply_software(options, places_, scenario_);
  else
    check_software(options, places_, scenario_.options);
}

void Reader::choose_attention_kernel() {
  if (!scenario_.profile || scenario_.options.attention_kernel.empty()) return;
  choose_attention_kernel(*scenario_.profile);
  for (HardwareProfile& profile : scenario_.group_profiles) choose_attention_kernel(profile);
}

void Reader::choose_attention_kernel(HardwareProfile& profile) {
  const std::string& wanted = scenario_.options.attention_kernel;
  AttentionModel& attention = profile.attention;
  std::vector<std::string> names;
  for (const FlashKernel& kernel : attention.kernels) names.push_back(kernel.name);
  const auto found = std::ranges::find(names, wanted);
  if (found == names.end()) {
    root_->map("options").error("attention_kernel", "unknown-name",
                                fmt::format("profile {} has no kernel {}", profile.name, in_quotes(wanted)),
                                "it has " + join(names, ", "));
    return;
  }
  attention.in_use = static_cast<std::size_t>(found - names.begin());
}

// Warnings of the files that the scenario names, each once.
void Reader::keep_warnings() {
  std::vector<Diagnostic>& kept = scenario_.warnings;
  for (std::size_t i = first_; i < diagnostics_.items().size(); ++i)
    if (const Diagnostic& said = diagnostics_.items()[i]; std::ranges::find(kept, said) == kept.end())
      kept.push_back(said);
}

std::optional<Scenario> Reader::read() {
  read_head();
  read_machine();
  read_jobs();
  read_profile();
  check_with_mistakes();
  if (!watch_.clean()) return std::nullopt;
  for (Diagnostic& warning : keys_without_effect(scenario_)) scenario_.warnings.push_back(std::move(warning));
  keep_warnings();
  return std::move(scenario_);
}

// Other files of ours and of the field, by a key at their top; the first that is there counts.
struct OtherFile {
  const char* key;
  const char* is;
  const char* way_out;
};
constexpr OtherFile kOtherFiles[] = {
    {"stagecraft_profile", "a cost profile",
     "`stagecraft calibrate show FILE` shows it; a scenario names it as `profile`"},
    {"format", "a file of published measurements", "`stagecraft validate FILE` predicts them"},
    {"model_type", "a config.json of Hugging Face",
     "`stagecraft import hf FILE` reads it; a scenario names it as `model`"},
    {"zero_optimization", "a configuration of DeepSpeed", "`stagecraft import deepspeed FILE` reads it"},
    {"train_batch_size", "a configuration of DeepSpeed", "`stagecraft import deepspeed FILE` reads it"},
    {"traceEvents", "a trace",
     "`stagecraft import kineto FILE` reads it; `stagecraft diff` compares with it"},
    {"family", "a model", "a scenario names it as `model`"},
    {"device", "a node", "a scenario names it as `cluster.node`"},
    {"collective_efficiency", "a fabric", "a scenario names it as `cluster.fabric`"},
    {"fused_kernels", "a preset of software", "a scenario names it as `options.software`"}};

Diagnostic no_scenario(const YamlNode& root, const std::string& source) {
  Diagnostic diagnostic{.code = "not-a-scenario",
                        .where = {.file = source, .line = 1, .column = 1},
                        .path = {},
                        .message = "this is not a scenario: the key `stagecraft: 1` is missing",
                        .hint = root.find("model") != nullptr ? "write that key at its top" : ""};
  const auto found = std::ranges::find_if(
      kOtherFiles, [&](const OtherFile& other) { return root.find(other.key) != nullptr; });
  if (found == std::end(kOtherFiles)) return diagnostic;
  diagnostic.message = fmt::format("this is {}, not a scenario", found->is);
  diagnostic.hint = found->way_out;
  return diagnostic;
}

}  // namespace

std::optional<Scenario> read_scenario(const ScenarioTree& tree, Library& library, Diagnostics& diagnostics) {
  if (tree.root.find("stagecraft") == nullptr) {
    diagnostics.error(no_scenario(tree.root, tree.source));
    return std::nullopt;
  }
  if (looks_like_sweep(tree.root)) {
    diagnostics.error({.code = "not-a-scenario",
                       .where = {.file = tree.source, .line = 1, .column = 1},
                       .path = {},
                       .message = "this is a sweep, not a scenario: it has `base` or `vary`, and no `model`",
                       .hint = "stagecraft sweep FILE runs it; its `base` is a scenario"});
    return std::nullopt;
  }
  Diagnostics own;
  own.survey_keys(diagnostics.survey());
  std::optional<Scenario> scenario = Reader(tree, library, own).read();
  std::vector<Diagnostic> said = own.items();
  if (diagnostics.survey() == nullptr) point_elsewhere(said, tree, library);
  for (Diagnostic& diagnostic : said) diagnostics.add(std::move(diagnostic));
  return scenario;
}

std::optional<Scenario> load_scenario(const fs::path& file, std::span<const std::string> overrides,
                                      Library& library, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  std::optional<ScenarioTree> tree = load_tree(file, library, diagnostics);
  if (!tree) return std::nullopt;
  apply_overrides(*tree, overrides, library, diagnostics);
  auto scenario = read_scenario(*tree, library, diagnostics);
  return watch.clean() ? std::move(scenario) : std::nullopt;
}

std::optional<Scenario> read_scenario(const YamlNode& root, const std::string& source, const fs::path& folder,
                                      const DataDirectory& data, Diagnostics& diagnostics) {
  Library library(data);
  return read_scenario({.root = root, .source = source, .folder = folder}, library, diagnostics);
}

std::optional<Scenario> load_scenario(const fs::path& file, std::span<const std::string> overrides,
                                      const DataDirectory& data, Diagnostics& diagnostics) {
  Library library(data);
  return load_scenario(file, overrides, library, diagnostics);
}

}  // namespace stagecraft
