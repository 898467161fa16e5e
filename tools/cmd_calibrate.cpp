// calibrate fit: samples -> profile, or constants fitted on whole published iterations (--end-to-end).
// calibrate residuals: what predictions leave unexplained. calibrate plan: what to measure for these
// scenarios. calibrate show: what a profile knows and how well.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/sample_set.hpp"
#include "models/compute_cost.hpp"
#include "models/operators.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/stage_operators.hpp"
#include "sim/price_iteration.hpp"
#include "sim/simulate.hpp"
#include "tools/commands.hpp"
#include "tools/files.hpp"
#include "tools/scenarios.hpp"
#include "tools/validation/end_to_end.hpp"
#include "tools/validation/fit_residuals.hpp"
#include "tools/validation/published_sets.hpp"

namespace stagecraft {
namespace {

// A profile by name, or by path where the word looks like one.
std::filesystem::path profile_file(const std::string& word, const Session& session) {
  if (word.find('/') != std::string::npos || word.ends_with(".yaml")) return word;
  return session.data.root / "calibrate/profiles" / (word + ".yaml");
}

std::string required(const Arguments& arguments, std::string_view option, std::string hint) {
  const std::optional<std::string> given = arguments.text(option);
  if (!given || given->empty()) throw UsageError(fmt::format("--{} is missing", option), std::move(hint));
  return *given;
}

std::vector<std::string> without_first(const std::vector<std::string>& words) {
  return {words.begin() + 1, words.end()};
}

// --- fit ---------------------------------------------------------------------------------------------------

std::optional<FittedProfile> fit_files(const std::vector<std::string>& files, const Arguments& arguments,
                                       const Session& session, Diagnostics& diagnostics) {
  const std::string base_name =
      required(arguments, "base", "a profile of the same device, e.g. a100-sxm4-80gb");
  const std::string name = required(arguments, "name", "what the new profile is called");
  std::vector<SampleText> texts;
  for (const std::string& file : files) {
    if (std::optional<std::string> text = read_text_file(file, diagnostics))
      texts.push_back({.name = file, .text = *std::move(text)});
  }
  const std::optional<HardwareProfile> base = load_profile(profile_file(base_name, session), diagnostics);
  const std::optional<SampleSet> samples = read_sample_set(texts, diagnostics);
  if (!base || !samples || diagnostics.has_errors()) return std::nullopt;
  return fit_profile(*samples, *base, name, diagnostics);
}

void print_families(const FittedProfile& fitted, Session& session) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  table.row({"fitted", "", "median", "95th", "worst, left out of its fit"});
  for (const FamilyFit& family : fitted.families) {
    const bool judged = family.left_out.count() > 0;
    const RowError worst = judged ? family.left_out.worst(1).front() : RowError{};
    table.row({family.family, family.outcome, judged ? percent(family.left_out.median()) : "",
               judged ? percent(family.left_out.p95()) : "",
               judged ? fmt::format("{:+.1f} % {}", 100 * worst.error, worst.row) : ""});
  }
  session.err << table.str();
  if (fitted.unused > 0)
    session.err << fmt::format("{} samples serve no constant of a profile\n", fitted.unused);
}

// {"schema": "stagecraft.fit/1", …}
std::string fit_json(const FittedProfile& fitted, const std::string& output) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.fit/1").field("profile", fitted.profile.name);
  json.field("output", output).field("unused_samples", fitted.unused).key("families").begin_array();
  for (const FamilyFit& family : fitted.families) {
    json.begin_object().field("family", family.family).field("outcome", family.outcome);
    json.field("left_out", family.left_out.count());
    if (family.left_out.count() > 0) {
      const RowError worst = family.left_out.worst(1).front();
      json.field("median_error", family.left_out.median()).field("p95_error", family.left_out.p95());
      json.field("worst_error", worst.error).field("worst_row", worst.row);
    }
    json.end_object();
  }
  return json.end_array().end_object().str();
}

// Reports what no scenario could load: constants that no device has come of times that are none of it.
void check_loads(const FittedProfile& fitted, const std::string& text, Diagnostics& diagnostics) {
  Diagnostics refusals;
  if (parse_profile(text, fitted.profile.name, refusals)) return;
  for (const Diagnostic& refusal : refusals.items())
    diagnostics.error(
        {.code = "impossible-sample",
         .path = refusal.path,
         .message = fmt::format("the samples give a profile that is refused: {}", refusal.message),
         .hint = "are their times in seconds, and of this device?"});
}

int fit_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string> files = without_first(arguments.words());
  if (files.empty()) throw UsageError("no file of samples is named", "stagecraft-calibrate writes them");
  const std::string output = required(arguments, "output", "the file to write, e.g. my-a100.yaml");
  Diagnostics diagnostics;
  const std::optional<FittedProfile> fitted = fit_files(files, arguments, session, diagnostics);
  const std::string text = fitted ? to_yaml(*fitted) : std::string();
  if (fitted) check_loads(*fitted, text, diagnostics);
  if (!diagnostics.has_errors()) write_text_file(output, text, arguments.has("force"), diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (diagnostics.has_errors()) return kWrongInput;
  if (arguments.has("json"))
    session.out << fit_json(*fitted, output) << '\n';
  else if (!arguments.has("quiet"))
    print_families(*fitted, session);
  return kDone;
}

// --- whole iterations --------------------------------------------------------------------------------------

struct ScoredSets {
  std::vector<PublishedSet> sets;
  ScoreData data;
};

// All published sets; reports what cannot be read.
ScoredSets read_sets(const Session& session, Diagnostics& diagnostics) {
  ScoredSets out;
  out.data = load_score_data(session.data, diagnostics);
  const SetFabrics fabrics = set_fabrics(session.data, diagnostics);
  for (const std::filesystem::path& file : published_files(session.data, "calibrate/validation")) {
    if (std::optional<PublishedSet> set = load_published(file, fabrics, diagnostics))
      out.sets.push_back(*std::move(set));
  }
  return out;
}

int end_to_end_command(const Arguments& arguments, Session& session) {
  if (arguments.words().size() > 1)
    throw UsageError("--end-to-end fits on the published sets and takes no file",
                     "without it, `calibrate fit` takes samples");
  Diagnostics diagnostics;
  const ScoredSets scored = read_sets(session, diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (diagnostics.has_errors()) return kWrongInput;
  Library library(session.data);
  const std::vector<ProfileFit> fits = fit_profiles(scored.sets, scored.data, library);
  if (!arguments.has("json")) {
    session.out << end_to_end_text(fits);
    return kDone;
  }
  for (const ProfileFit& fit : fits) session.out << end_to_end_json(fit) << '\n';
  return kDone;
}

void write_residuals(const ProfileResiduals& profile, const Session& session, Diagnostics& diagnostics) {
  const std::string file = profile_file(profile.profile, session).string();
  if (const std::optional<std::string> text = read_text_file(file, diagnostics))
    write_text_file(file, with_residuals(*text, profile.residuals), true, diagnostics);
}

int residuals_command(const Arguments& arguments, Session& session) {
  Diagnostics diagnostics;
  const ScoredSets scored = read_sets(session, diagnostics);
  std::vector<ProfileResiduals> residuals;
  if (!diagnostics.has_errors()) {
    Library library(session.data);
    std::vector<SetScore> scores;
    for (const PublishedSet& set : scored.sets) scores.push_back(score_set(set, load_rows(set, library)));
    residuals = fit_residuals(scores, scored.data);
  }
  if (arguments.has("write"))
    for (const ProfileResiduals& profile : residuals) write_residuals(profile, session, diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (diagnostics.has_errors()) return kWrongInput;
  session.out << residuals_text(residuals);
  return kDone;
}

// --- plan --------------------------------------------------------------------------------------------------

// Seconds of an iteration of one GPU that stand on each shape, by the key of its sample.
struct Wanted {
  WantedPoint point;
  double seconds = 0;
};
using WantedByKey = std::map<std::string, Wanted>;

// Gradients are e5m2, as the suite takes them.
std::string dtype_of(Precision precision, bool backward) {
  if (precision == Precision::kFp32) return "tf32";
  if (precision == Precision::kFp8) return backward ? "e5m2" : "e4m3";
  return std::string(kPrecisionNames[static_cast<std::size_t>(precision)]);
}

// cuBLASLt takes fp8 in one layout alone: operands are transposed as they are cast.
Sample gemm_sample(const Op& op, Precision precision) {
  Sample sample;
  sample.family = sample.op = "gemm";
  sample.shape = {{"m", op.gemm.m}, {"n", op.gemm.n}, {"k", op.gemm.k}, {"batch", op.gemm.batch}};
  const GemmLayout layout = precision == Precision::kFp8 ? GemmLayout::kTN : op.gemm.layout;
  sample.tags = {{"dtype", dtype_of(precision, op.gemm.layout != GemmLayout::kTN)},
                 {"layout", std::string(kGemmLayoutNames[static_cast<std::size_t>(layout)])}};
  if (op.kind == OpKind::kGroupedGemm) sample.tags["grouped"] = "strided";
  return sample;
}

// Heads are those of the op: tensor ranks and an exchange of heads over context ranks leave a part of the
// model's. The suite measures squares with one head size, in 16 bit: of blocks of a context ring and of latent
// attention that of their keys and values, whose length and size their price is of.
Sample attention_sample(const Op& op, std::int64_t length, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t heads = op.attention.batch / shard.micro_batch;
  const Precision precision = shard.precision == Precision::kFp8 ? Precision::kBf16 : shard.precision;
  Sample sample;
  sample.family = "attention";
  sample.op = op.kind == OpKind::kFlashForward ? "flash_forward" : "flash_backward";
  sample.shape = {{"batch", shard.micro_batch},
                  {"heads", heads},
                  {"kv_heads", std::max<std::int64_t>(heads * model.kv_heads / model.heads, 1)},
                  {"head_size", op.attention.value_size},
                  {"sequence", length}};
  sample.tags = {{"dtype", dtype_of(precision, false)}, {"causal", op.attention.causal ? "true" : "false"}};
  return sample;
}

class ShapePlanner {
 public:
  ShapePlanner(const Scenario& scenario, const TransformerSpec& model, const ParallelPlan& plan)
      : profile_(*scenario.profile),
        model_(model),
        plan_(plan),
        request_(pricing_request(scenario, plan)),
        shard_(shard_of(request_)) {}

  void add_to(WantedByKey& wanted) const {
    // Over all stages of a micro-batch, shared by the pipeline ranks.
    const double times = static_cast<double>(plan_.micro_batches) / plan_.pipeline;
    for (const CountedOps& piece : stage_operators(model_, request_, whole_content(plan_)))
      add(piece.ops, static_cast<double>(piece.times) * times, wanted);
  }

 private:
  void add(const LayerOps& ops, double times, WantedByKey& wanted) const {
    for (const Ops* pass : {&ops.forward, &ops.recompute, &ops.input_gradient, &ops.weight_gradient})
      for (const Op& op : *pass) add(op, times, wanted);
  }

  // Published rows are asked for as well: a table that is fitted takes the place of the one before.
  void add(const Op& op, double times, WantedByKey& wanted) const {
    const bool gemm =
        op.kind == OpKind::kGemm || op.kind == OpKind::kBatchedGemm || op.kind == OpKind::kGroupedGemm;
    const bool flash = op.kind == OpKind::kFlashForward || op.kind == OpKind::kFlashBackward;
    if (!gemm && !flash)
      return;  // memory kernels have a rate, and collectives fits: no shape of theirs is lacking
    const Cost cost = compute_cost(profile_, shard_.precision, op);
    if (cost.provenance == Provenance::kMeasured) return;
    const double seconds = times * to_seconds(cost.time);
    if (gemm) return add(gemm_sample(op, op.precision.value_or(shard_.precision)), seconds, wanted);
    // A curve is fitted to three lengths; all have a part in the price.
    for (const std::int64_t part : {1, 2, 4})
      add(attention_sample(op, std::max<std::int64_t>(op.attention.keys / part, 1), model_, shard_),
          seconds / 3, wanted);
  }

  static void add(Sample sample, double seconds, WantedByKey& wanted) {
    const std::string key = sample_key(sample);
    Wanted& entry = wanted.try_emplace(key).first->second;
    entry.point.point = std::move(sample);
    entry.seconds += seconds;
  }

  const HardwareProfile& profile_;
  const TransformerSpec& model_;
  const ParallelPlan& plan_;
  PricingRequest request_;
  Shard shard_;
};

// Reports what is wrong with the scenario; stages with given times ask nothing of a profile.
void plan_scenario(const Scenario& scenario, WantedByKey& wanted, Diagnostics& diagnostics) {
  const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (!prepared || model == nullptr || !scenario.profile) return;
  ShapePlanner(scenario, *model, prepared->plan).add_to(wanted);
}

// The suite's reader takes no other key than a point's own, so a plain line has no `schema`.
void print_plan(const WantedByKey& wanted, bool with_schema, Session& session) {
  std::vector<const Wanted*> order;
  double total = 0;
  for (const auto& [key, entry] : wanted) {
    order.push_back(&entry);
    total += entry.seconds;
  }
  std::ranges::stable_sort(order, [](const Wanted* a, const Wanted* b) { return a->seconds > b->seconds; });
  for (const Wanted* entry : order) {
    WantedPoint point = entry->point;
    point.value = 100 * entry->seconds / total;  // of what the profile has to guess at
    std::string line = to_json_line(point);
    if (with_schema) line.insert(1, "\"schema\":\"stagecraft.plan/1\",");
    session.out << line << '\n';
  }
}

int plan_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string> files = without_first(arguments.words());
  if (files.empty())
    throw UsageError("no scenario is named", "stagecraft doctor lists those that are installed");
  WantedByKey wanted;
  Diagnostics diagnostics;
  for (const std::string& file : files) {
    const std::optional<Scenario> scenario =
        load_scenario(file, arguments.all("set"), session.data, diagnostics);
    if (scenario && !diagnostics.has_errors()) plan_scenario(*scenario, wanted, diagnostics);
  }
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (diagnostics.has_errors()) return kWrongInput;
  print_plan(wanted, arguments.has("json"), session);
  return kDone;
}

// --- show --------------------------------------------------------------------------------------------------

using Shares = std::array<int, kProvenanceNames.size()>;

Shares constants_by_provenance(const HardwareProfile& profile) {
  Shares shares{};
  const auto count = [&](Provenance provenance) { ++shares[static_cast<std::size_t>(provenance)]; };
  const GemmModel& gemm = profile.gemm;
  for (const Sourced<double>* item :
       {&gemm.scale, &gemm.efficiency_tn, &gemm.efficiency_nn, &gemm.efficiency_nt, &gemm.batched_efficiency,
        &gemm.misaligned_factor, &profile.memory_efficiency, &profile.loss_traffic, &profile.tensor_overlap,
        &profile.gradient_overlap_slowdown, &profile.sharded_overlap_slowdown, &profile.memory.fragmentation,
        &profile.experts.grouped_factor, &profile.experts.permutation_efficiency,
        &profile.attention.half_head_size})
    count(item->provenance);
  for (const Sourced<Duration>* item :
       {&profile.host.kernel_gap, &profile.host.launch, &profile.host.per_iteration,
        &profile.experts.group_gap, &profile.attention.fixed})
    count(item->provenance);
  for (const std::optional<Sourced<double>>& item : {profile.host.slowdown, profile.gpu_variability})
    if (item) count(item->provenance);
  if (profile.supports(Precision::kFp8)) count(gemm.fp8_factor.provenance);
  for (const Sourced<Bytes>* item :
       {&profile.memory.context, &profile.memory.communicators, &profile.memory.workspace})
    count(item->provenance);
  for (const FlashKernel& kernel : profile.attention.kernels) {
    for (const FlashPass* pass : {&kernel.forward, &kernel.backward}) {
      count(pass->causal.provenance);
      count(pass->dense.provenance);
      count(pass->half_blocks.provenance);
    }
  }
  return shares;
}

Shares rows_by_provenance(const HardwareProfile& profile) {
  Shares shares{};
  for (const GemmRow& row : profile.gemm.rows) ++shares[static_cast<std::size_t>(row.provenance)];
  return shares;
}

Shares collectives_by_provenance(const HardwareProfile& profile) {
  Shares shares{};
  for (const CollectiveFit& fit : profile.collectives) ++shares[static_cast<std::size_t>(fit.provenance)];
  return shares;
}

// The table against the formula that speaks where there is no row.
FitErrors formula_errors(const GemmModel& model) {
  FitErrors errors;
  for (const GemmRow& row : model.rows) {
    errors.add(fmt::format("{} x {}, k {}, {}", row.m, row.n, row.k,
                           kGemmLayoutNames[static_cast<std::size_t>(row.layout)]),
               std::exp(row.log_ratio), 1);
  }
  return errors;
}

std::string extents(const GemmModel& model, GemmLayout layout, std::int64_t GemmRow::*extent) {
  std::int64_t least = 0, most = 0;
  for (const GemmRow& row : model.rows) {
    if (row.layout != layout) continue;
    least = least == 0 ? row.*extent : std::min(least, row.*extent);
    most = std::max(most, row.*extent);
  }
  return most == 0 ? "" : fmt::format("{} to {}", least, most);
}

std::string coverage_table(const GemmModel& model) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"GEMM", "rows", "m", "n", "k", "of peak"});
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT}) {
    const auto rows = std::ranges::count(model.rows, layout, &GemmRow::layout);
    table.row({std::string(kGemmLayoutNames[static_cast<std::size_t>(layout)]), std::to_string(rows),
               extents(model, layout, &GemmRow::m), extents(model, layout, &GemmRow::n),
               extents(model, layout, &GemmRow::k), fmt::format("{:.3f}", model.efficiency(layout).value)});
  }
  return table.str(2);
}

std::string collective_coverage(const HardwareProfile& profile) {
  TextTable table(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  table.row({"collective", "ranks", "nodes", "algorithm", "latency", "bus", "known"});
  for (const CollectiveFit& fit : profile.collectives) {
    table.row({std::string(kCollectiveNames[static_cast<std::size_t>(fit.kind)]), std::to_string(fit.ranks),
               std::to_string(fit.nodes), fit.algorithm, human(fit.latency), human(fit.bus_bandwidth),
               std::string(name(fit.provenance))});
  }
  return table.str(2);
}

std::string provenance_table(const HardwareProfile& profile) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.row({"known", "constants", "GEMM rows", "collectives"});
  const Shares constants = constants_by_provenance(profile);
  const Shares rows = rows_by_provenance(profile);
  const Shares collectives = collectives_by_provenance(profile);
  for (std::size_t i = 0; i < kProvenanceNames.size(); ++i) {
    table.row({std::string(kProvenanceNames[i]), std::to_string(constants[i]), std::to_string(rows[i]),
               std::to_string(collectives[i])});
  }
  return table.str(2);
}

void show_text(const HardwareProfile& profile, Session& session) {
  session.out << fmt::format("{}   {}\n  {}, made by {}\n\n", profile.name, profile.device.name,
                             profile.date.empty() ? "no date" : "newest ingredient of " + profile.date,
                             profile.made_by);
  session.out << coverage_table(profile.gemm) << '\n' << collective_coverage(profile) << '\n';
  session.out << provenance_table(profile) << '\n';
  const FitErrors errors = formula_errors(profile.gemm);
  session.out << fmt::format("  GEMM rows against the tile model: {}\n", errors.summary());
  session.out << fmt::format("  off the rows: {}\n  farthest from the tile model:\n",
                             profile.gemm.correction_source);
  TextTable table({Align::kRight, Align::kLeft});
  for (const RowError& row : errors.worst(5)) table.row({fmt::format("{:+.1f} %", 100 * row.error), row.row});
  session.out << table.str(4);
}

void show_json(const HardwareProfile& profile, Session& session) {
  const FitErrors errors = formula_errors(profile.gemm);
  const Shares constants = constants_by_provenance(profile);
  const Shares rows = rows_by_provenance(profile);
  const Shares collectives = collectives_by_provenance(profile);
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.profile-summary/1");
  json.field("name", std::string_view(profile.name)).field("device", std::string_view(profile.device.name));
  json.field("date", std::string_view(profile.date)).key("provenance").begin_object();
  for (std::size_t i = 0; i < kProvenanceNames.size(); ++i) {
    json.key(kProvenanceNames[i]).begin_object().field("constants", constants[i]);
    json.field("gemm_rows", rows[i]).field("collectives", collectives[i]).end_object();
  }
  json.end_object().key("gemm_error").begin_object();
  json.field("median", errors.median()).field("p95", errors.p95()).key("worst").begin_array();
  for (const RowError& row : errors.worst(5)) {
    json.begin_object().field("row", std::string_view(row.row)).field("error", row.error).end_object();
  }
  json.end_array().end_object().end_object();
  session.out << json.str() << '\n';
}

int show_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string> words = without_first(arguments.words());
  if (words.size() != 1)
    throw UsageError("`calibrate show` takes one profile", "stagecraft doctor lists them");
  Diagnostics diagnostics;
  const std::optional<HardwareProfile> profile = load_profile(profile_file(words[0], session), diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (!profile) return kWrongInput;
  arguments.has("json") ? show_json(*profile, session) : show_text(*profile, session);
  return kDone;
}

// --- the parts ---------------------------------------------------------------------------------------------

struct Part {
  std::string_view name;
  std::span<const std::string_view> takes;
  int (*run)(const Arguments& arguments, Session& session);
};

constexpr std::string_view kOfFit[] = {"base", "name", "output", "force"};
constexpr std::string_view kOfEndToEnd[] = {"end-to-end"};
constexpr std::string_view kOfPlan[] = {"set"};
constexpr std::string_view kOfResiduals[] = {"write"};

constexpr std::array kParts{Part{.name = "fit", .takes = kOfFit, .run = fit_command},
                            Part{.name = "fit --end-to-end", .takes = kOfEndToEnd, .run = end_to_end_command},
                            Part{.name = "plan", .takes = kOfPlan, .run = plan_command},
                            Part{.name = "residuals", .takes = kOfResiduals, .run = residuals_command},
                            Part{.name = "show", .takes = {}, .run = show_command}};

}  // namespace

int calibrate_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& words = arguments.words();
  if (words.empty())
    throw UsageError("`calibrate` takes fit, plan, residuals or show", "stagecraft calibrate --help");
  // A fit on whole iterations takes nothing of a fit on samples.
  const bool end_to_end = words[0] == "fit" && arguments.has("end-to-end");
  const std::string name = end_to_end ? "fit --end-to-end" : words[0];
  const auto part = std::ranges::find(kParts, name, &Part::name);
  if (part == kParts.end()) {
    const std::vector<std::string> known = {"fit", "plan", "residuals", "show"};
    throw UsageError(fmt::format("`calibrate {}` is no command", words[0]), suggest(words[0], known));
  }
  refuse_without_effect(arguments, "calibrate", name, part->takes, "see stagecraft calibrate --help");
  return part->run(arguments, session);
}

}  // namespace stagecraft
