#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "sim/resilience/predict_goodput.hpp"
#include "sim/scenario/library.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/progress.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/command_line/vary_option.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/page_files.hpp"
#include "tools/tables/goodput_table.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostVariants = 1'000;

GoodputOptions goodput_options(const Arguments& arguments) {
  return {.seed = seed_of(arguments),
          .threads = jobs_of(arguments),
          .inputs = true,
          .timeline = arguments.has("timeline") || arguments.has("html"),
          .plan = arguments.has("plan")};
}

// The repeats of scenarios one after the other, of which each has about as many.
class RepeatsShown {
 public:
  RepeatsShown(const Arguments& arguments, Session& session, std::size_t scenarios)
      : quiet_(arguments.has("quiet")), session_(session), scenarios_(scenarios) {}
  ~RepeatsShown() {
    if (line_) line_->finish();
  }
  RepeatsShown(const RepeatsShown&) = delete;
  RepeatsShown& operator=(const RepeatsShown&) = delete;

  // Of the scenario of this index.
  void watch(std::size_t index, GoodputOptions& options) {
    if (quiet_) return;
    options.progress = [this, index](std::size_t done, std::size_t all) {
      if (!line_) line_.emplace(session_.err, session_.err_is_terminal, scenarios_ * all, "repeats");
      line_->update(std::min(index * all + done, scenarios_ * all));
    };
  }

 private:
  bool quiet_;
  Session& session_;
  std::size_t scenarios_;
  std::optional<ProgressLine> line_;
};

// Oobleck alone has templates: an option that changes nothing is refused.
void refuse_plan_of_others(const Scenario& scenario) {
  if (!scenario.failures || scenario.failures->policy.kind == PolicyKind::kOobleck) return;
  const std::string_view name = kPolicyNames[static_cast<std::size_t>(scenario.failures->policy.kind)];
  Diagnostics diagnostics;
  diagnostics.error(
      {.code = "no-plan",
       .where = place_of(scenario, "failures.policy"),
       .path = "failures.policy",
       .message = fmt::format("--plan prints Oobleck's pipeline templates, and {} has none", name),
       .hint = "leave --plan out, or --set failures.policy=oobleck"});
  diagnostics.throw_if_errors();
}

int print_one(const Scenario& scenario, const Arguments& arguments, Session& session) {
  if (arguments.has("plan")) refuse_plan_of_others(scenario);
  GoodputOptions options = goodput_options(arguments);
  RepeatsShown shown(arguments, session, 1);
  if (arguments.words().size() > 1)
    options.threads = 1;  // they are spread over the scenarios
  else
    shown.watch(0, options);
  GoodputReport report = predict_goodput(scenario, options);
  if (arguments.has("html")) write_page(arguments, report);
  if (!arguments.has("timeline")) report.timeline.clear();  // the page alone has asked for it
  if (arguments.has("json")) {
    session.out << with_origin(render_json(report), scenario) << '\n';
  } else {
    session.out << render_text(report,
                               {.verbose = arguments.has("verbose"), .quiet = arguments.has("quiet")});
  }
  return kDone;
}

GoodputOutcome outcome_of(const Variant& variant, const GoodputOptions& options, Library& library) {
  GoodputOutcome outcome;
  Diagnostics diagnostics;
  outcome.scenario = load_scenario(variant.file, variant.overrides, library, diagnostics);
  outcome.diagnostics = diagnostics.sorted();
  if (!outcome.scenario || diagnostics.has_errors()) return outcome;
  try {
    outcome.report = predict_goodput(*outcome.scenario, options);
  } catch (const ScenarioError& error) {
    outcome.diagnostics = error.diagnostics();
  }
  return outcome;
}

GoodputComparison compared(const Arguments& arguments, Session& session) {
  const std::vector<Vary> varied = varied_by(arguments);
  const std::vector<std::string>& files = arguments.words();
  refuse_more_variants(kMostVariants, files, varied);
  GoodputComparison comparison{
      .paths = {}, .variants = variants_of(files, arguments.all("set"), varied), .outcomes = {}};
  for (const Vary& vary : varied) comparison.paths.push_back(vary.path);
  print_warnings(overruled_settings(arguments, varied_paths(varied)), arguments, session);
  GoodputOptions options = goodput_options(arguments);
  options.inputs = options.timeline = options.plan = false;
  Library library(with_standard_input(arguments, session));
  RepeatsShown shown(arguments, session, comparison.variants.size());
  for (const Variant& variant : comparison.variants) {
    shown.watch(comparison.outcomes.size(), options);
    GoodputOutcome& outcome = comparison.outcomes.emplace_back(outcome_of(variant, options, library));
    say_vary(outcome.diagnostics, comparison.paths);
    if (!outcome.report) continue;
    for (std::size_t i = 0; i < comparison.paths.size(); ++i)
      outcome.report->varied.emplace_back(comparison.paths[i], variant.values[i]);
  }
  return comparison;
}

int print_comparison(const Arguments& arguments, Session& session) {
  if (arguments.words().empty())
    throw UsageError("no scenario is named", "stagecraft doctor lists those that are installed");
  for (const char* const alone : {"plan", "timeline"})
    if (arguments.has(alone))
      throw UsageError(fmt::format("--{} is about one scenario, and --vary makes several", alone),
                       fmt::format("leave --vary or --{} out", alone));
  const GoodputComparison comparison = compared(arguments, session);
  if (!arguments.has("json") && told_shared_mistakes(comparison.outcomes, arguments, session))
    return kWrongInput;
  if (arguments.has("html")) write_page(arguments, comparison);
  if (!arguments.has("json")) print_warnings(diagnostics_of(comparison.outcomes), arguments, session);
  if (arguments.text("format") == "svg") {
    const std::string picture = render_svg(comparison);
    if (picture.empty())
      throw UsageError("a chart needs a path with two numbers at least, and a variant that runs",
                       "--vary failures.process.rate_per_node_day=0.001,0.01,0.1");
    session.out << picture;
  } else if (arguments.has("json")) {
    for (const GoodputOutcome& outcome : comparison.outcomes)
      session.out << (outcome.report
                          ? with_origin(render_json(*outcome.report, {.inputs = false}), *outcome.scenario)
                          : render_json(outcome.diagnostics))
                  << '\n';
  } else {
    session.out << render_text(comparison);
  }
  const bool all = std::all_of(comparison.outcomes.begin(), comparison.outcomes.end(),
                               [](const GoodputOutcome& outcome) { return outcome.report.has_value(); });
  return all ? kDone : kWrongInput;
}

}  // namespace

int goodput_command(const Arguments& arguments, Session& session) {
  refuse_two_forms(arguments);
  if (arguments.has("vary")) return print_comparison(arguments, session);
  if (arguments.has("format"))
    throw UsageError("--format is about the chart of --vary", "add --vary, or leave --format out");
  if (arguments.has("html") && arguments.words().size() > 1)
    throw UsageError(
        fmt::format("--html writes one file, and there are {} scenarios", arguments.words().size()),
        "run them one by one, or give --vary");
  return for_each_scenario(arguments, session, [&](const Scenario& scenario, Session& own) {
    return print_one(scenario, arguments, own);
  });
}

}  // namespace stagecraft
