// calibrate fit: samples -> profile, or constants fitted on whole published iterations (--end-to-end).
// calibrate residuals: what predictions leave unexplained. calibrate plan: what to measure for these
// scenarios. calibrate show: what a profile knows and how well.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/sample_set.hpp"
#include "sim/accuracy/measurement_plan.hpp"
#include "sim/scenario/preset.hpp"
#include "tools/command_line/files.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"
#include "tools/tables/profile_summary.hpp"
#include "tools/validation/end_to_end.hpp"
#include "tools/validation/fit_residuals.hpp"
#include "tools/validation/published_sets.hpp"

namespace stagecraft {
namespace {

// A profile by name, or by path where the word looks like one.
std::filesystem::path profile_file(const std::string& word, const Session& session) {
  return is_path(word) ? std::filesystem::path(word)
                       : session.data.root / kProfilePreset.folder / (word + ".yaml");
}

std::optional<HardwareProfile> profile_of(const std::string& word, const Session& session,
                                          Diagnostics& diagnostics) {
  const std::vector<std::string> names = session.data.names(std::string(kProfilePreset.folder));
  if (is_path(word) || std::ranges::find(names, word) != names.end())
    return load_profile(profile_file(word, session), diagnostics);
  diagnostics.error({.code = "unknown-name",
                     .message = fmt::format("{} is not a known profile, nor a file", in_quotes(word)),
                     .hint = hint_for(word, kProfilePreset, names, 0)});
  return std::nullopt;
}

std::string required(const Arguments& arguments, std::string_view option, std::string hint) {
  const std::optional<std::string> given = arguments.text(option);
  if (!given || given->empty()) throw UsageError(fmt::format("--{} is missing", option), std::move(hint));
  return *given;
}

using Words = std::vector<std::string>;  // behind the part's name

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
  const std::optional<HardwareProfile> base = profile_of(base_name, session, diagnostics);
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
  if (fitted.profile.residuals)
    session.err << "intervals: as wide as with the base; no published iteration scored the new profile\n";
  if (fitted.unused > 0)
    session.err << fmt::format("no constant of a profile asks for {}\n",
                               counted(static_cast<std::int64_t>(fitted.unused), "sample"));
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

// Reports fitted profiles that no scenario could load: impossible constants come from bad times.
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

int fit_command(const Words& files, const Arguments& arguments, Session& session) {
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

// All published sets; reports unreadable ones.
ScoredSets read_sets(const Session& session, Diagnostics& diagnostics) {
  ScoredSets out;
  out.data = load_score_data(session.data, diagnostics);
  const std::vector<KnownSource> sources = known_sources(session.data, diagnostics);
  for (const std::filesystem::path& file : published_files(session.data)) {
    if (std::optional<PublishedSet> set = load_published(file, sources, diagnostics))
      out.sets.push_back(*std::move(set));
  }
  return out;
}

int end_to_end_command(const Words& words, const Arguments& arguments, Session& session) {
  if (!words.empty())
    throw UsageError("--end-to-end fits on the published sets and takes no file",
                     "without it, `calibrate fit` takes samples");
  Diagnostics diagnostics;
  const ScoredSets scored = read_sets(session, diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (diagnostics.has_errors()) return kWrongInput;
  Library library(session.data);
  const std::vector<ProfileFit> fits = fit_constants(scored.sets, scored.data, library);
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

int residuals_command(const Words& words, const Arguments& arguments, Session& session) {
  if (!words.empty())
    throw UsageError("`calibrate residuals` is about the published sets and takes no file",
                     "leave " + in_quotes(words[0]) + " out");
  Diagnostics diagnostics;
  const ScoredSets scored = read_sets(session, diagnostics);
  ResidualFit fit;
  if (!diagnostics.has_errors()) {
    Library library(session.data);
    const auto scores_with = [&](const std::vector<std::string>& overrides) {
      std::vector<SetScore> scores;
      for (const PublishedSet& set : scored.sets)
        scores.push_back(score_set(set, load_rows(set, library, overrides)));
      return scores;
    };
    fit = fit_residuals(scores_with({}), scores_with(overrides_that_unname(scored.data)), scored.data);
  }
  if (arguments.has("write"))
    for (const ProfileResiduals& profile : fit.profiles) write_residuals(profile, session, diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (diagnostics.has_errors()) return kWrongInput;
  if (!arguments.has("json")) {
    session.out << residuals_text(fit);
    return kDone;
  }
  for (const ProfileResiduals& profile : fit.profiles) session.out << residuals_json(profile) << '\n';
  return kDone;
}

// --- plan --------------------------------------------------------------------------------------------------

// The suite's reader takes no other key than a point's own, so a plain line has no `schema`.
void print_plan(const MeasurementPlan& plan, bool with_schema, Session& session) {
  for (const WantedPoint& point : plan.points()) {
    std::string line = to_json_line(point);
    if (with_schema) line.insert(1, "\"schema\":\"stagecraft.plan/1\",");
    session.out << line << '\n';
  }
}

// A scenario that is refused takes no other's points away.
ExitCode add_to_plan(const std::string& file, const Arguments& arguments, Session& session, Library& library,
                     MeasurementPlan& plan) {
  Diagnostics diagnostics;
  const std::optional<Scenario> scenario = load_scenario(file, arguments.all("set"), library, diagnostics);
  if (scenario) require_cluster(*scenario, diagnostics);
  if (scenario && !diagnostics.has_errors()) plan.add(*scenario, diagnostics);
  if (!diagnostics.has_errors()) return print_warnings(diagnostics.sorted(), arguments, session), kDone;
  print_diagnostics(diagnostics.sorted(), arguments, session);
  return kWrongInput;
}

int plan_command(const Words& files, const Arguments& arguments, Session& session) {
  if (files.empty())
    throw UsageError("no scenario is named", "stagecraft doctor lists those that are installed");
  MeasurementPlan plan;
  Library library(session.data);
  int worst = kDone;
  for (const std::string& file : files)
    worst = std::max<int>(worst, add_to_plan(file, arguments, session, library, plan));
  print_plan(plan, arguments.has("json"), session);
  if (worst == kDone && plan.points().empty() && !arguments.has("quiet"))
    session.err << "nothing to measure: the profiles have every shape, or the times are given\n";
  return worst;
}

// --- show --------------------------------------------------------------------------------------------------

int show_command(const Words& words, const Arguments& arguments, Session& session) {
  if (words.size() != 1)
    throw UsageError("`calibrate show` takes one profile", "stagecraft doctor lists them");
  Diagnostics diagnostics;
  const std::optional<HardwareProfile> profile = profile_of(words[0], session, diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session);
  if (!profile) return kWrongInput;
  session.out << (arguments.has("json") ? summary_json(*profile) + "\n" : summary_text(*profile));
  return kDone;
}

// --- the parts ---------------------------------------------------------------------------------------------

struct Part {
  std::string_view name;
  std::span<const std::string_view> takes;
  int (*run)(const Words& words, const Arguments& arguments, Session& session);
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
  refuse_without_effect(arguments, name, part->takes, "see stagecraft calibrate --help");
  return part->run({words.begin() + 1, words.end()}, arguments, session);
}

}  // namespace stagecraft
