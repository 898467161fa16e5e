#include "tools/commands/page_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/view/goodput_page.hpp"
#include "sim/view/run_view.hpp"
#include "sim/view/sweep_page.hpp"
#include "sim/view/validation_page.hpp"
#include "tools/command_line/files.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostTimelines = 24;  // on a page of `compare`
constexpr const char* kVersion = "stagecraft " STAGECRAFT_VERSION;

// The command line for the same answer.
std::string command_of(const Arguments& arguments) {
  std::string line = fmt::format("stagecraft {}", arguments.command().name);
  for (const std::string& word : arguments.words()) line += " " + shell_quoted(word);
  for (const char* const option : {"set", "vary", "seed", "shard"})
    for (const std::string& value : arguments.all(option))
      line += fmt::format(" --{} {}", option, shell_quoted(value));
  if (arguments.has("unfold")) line += " --unfold";
  return line;
}

PageHead head_of(const Arguments& arguments, std::string title) {
  return {.title = std::move(title), .command = command_of(arguments), .version = kVersion};
}

void write(const Arguments& arguments, const std::string& page) {
  Diagnostics diagnostics;
  write_text_file(*arguments.text("html"), page, arguments.has("force"), diagnostics);
  diagnostics.throw_if_errors();
}

std::string refusal_of(const std::vector<Diagnostic>& diagnostics) {
  const Diagnostic* error = first_error(diagnostics);
  return error == nullptr ? "cannot run" : one_line(*error);
}

// "4 stages, 8 micro-batches by schedule": what a page of variants is about. Where none loaded, the first file
// gives the name.
template <class AnyComparison>
std::string title_of(const AnyComparison& comparison) {
  std::vector<std::string> names;
  for (const auto& outcome : comparison.outcomes)
    if (outcome.scenario && (names.empty() || names.back() != printable(outcome.scenario->name)))
      names.push_back(printable(outcome.scenario->name));
  if (names.empty()) names.push_back(stem_of(comparison.variants.front().file));
  constexpr std::size_t kNamed = 4;
  if (names.size() > kNamed) names.resize(kNamed), names.push_back("…");
  return join(names, ", ") + (comparison.paths.empty() ? "" : " by " + join(comparison.paths, " and "));
}

ValidationSeries series_of(const SetScore& score) {
  const ErrorSummary summary = score.summary();
  ValidationSeries series{.name = score.name,
                          .title = score.title,
                          .profile = score.profile,
                          .mean_absolute = summary.mean_absolute,
                          .bias = summary.bias,
                          .median = summary.median_absolute,
                          .points = {}};
  for (const ScoredRow& row : score.rows)
    series.points.push_back(
        {.name = row.id, .predicted = row.predicted, .measured = row.measured, .interval = row.interval});
  return series;
}

class PageSink : public RowSink {
 public:
  PageSink(const Arguments& arguments, std::vector<RowColumn> columns, const std::string& name)
      : page_(std::move(columns)),
        file_(*arguments.text("html")),
        head_(head_of(arguments, name.empty() ? stem_of(arguments.words().front()) : name)),
        replace_(arguments.has("force")) {}

  std::optional<std::string> add(const RowDocument& row) override {
    page_.add(row);
    return std::nullopt;
  }

  std::optional<std::string> finish() override {
    Diagnostics diagnostics;
    write_text_file(file_, page_.html(head_), replace_, diagnostics);
    if (!diagnostics.has_errors()) return std::nullopt;
    return file_ + ": " + diagnostics.sorted().front().message;
  }

 private:
  SweepPage page_;
  std::string file_;
  PageHead head_;
  bool replace_ = false;
};

}  // namespace

void write_page(const Arguments& arguments, const Scenario& scenario, const Simulation& simulation) {
  write(arguments, html_page(RunPage{.head = head_of(arguments, printable(scenario.name)),
                                     .runs = {run_view(scenario, simulation)}}));
}

void write_page(const Arguments& arguments, const Comparison& comparison) {
  if (comparison.variants.size() > kMostTimelines)
    throw UsageError(fmt::format("a page shows {} timelines, and there are {} variants", kMostTimelines,
                                 comparison.variants.size()),
                     "vary fewer values, or use a sweep");
  const VariantNames names(comparison);
  RunPage page{.head = head_of(arguments, title_of(comparison)), .runs = {}};
  const std::size_t room = RunViewOptions{}.room / comparison.variants.size();  // as much as one alone has
  for (std::size_t i = 0; i < comparison.outcomes.size(); ++i) {
    const Outcome& outcome = comparison.outcomes[i];
    if (outcome.report)
      page.runs.push_back(run_view(*outcome.scenario, simulate_in_full(*outcome.scenario),
                                   {.title = names.spoken(i), .room = room}));
    else
      page.refused.push_back(names.spoken(i) + ": " + refusal_of(outcome.diagnostics));
  }
  if (page.runs.empty())
    throw UsageError("no variant can run: there is nothing for a page", "their reasons are above");
  page.words = best_of(comparison);
  const std::vector<std::string> reasons = reasons_of(comparison);
  for (std::size_t i = 0; i < reasons.size(); ++i)
    if (!comparison.outcomes[i].missed.empty()) page.words.push_back(reasons[i]);
  for (std::string& sentence : explanations(comparison)) page.words.push_back(std::move(sentence));
  write(arguments, html_page(page));
}

void write_page(const Arguments& arguments, const GoodputReport& report) {
  write(arguments,
        html_page(GoodputPage{.head = head_of(arguments, printable(report.name)), .reports = {report}}));
}

void write_page(const Arguments& arguments, const GoodputComparison& comparison) {
  GoodputPage page{.head = head_of(arguments, title_of(comparison)), .reports = {}};
  const std::vector<std::string> names = names_of(comparison);
  for (std::size_t i = 0; i < comparison.outcomes.size(); ++i) {
    const GoodputOutcome& outcome = comparison.outcomes[i];
    if (outcome.report) {
      page.reports.push_back(*outcome.report);
      page.names.push_back(names[i]);
    } else {
      page.refused.push_back(names[i] + ": " + refusal_of(outcome.diagnostics));
    }
  }
  write(arguments, html_page(page));
}

void write_page(const Arguments& arguments, const std::vector<SetScore>& scores) {
  ValidationPage page{.head = head_of(arguments, "Predicted against measured"), .sets = {}};
  for (const SetScore& score : scores) {
    if (!score.rows.empty()) page.sets.push_back(series_of(score));
    for (const SkippedRow& row : score.skipped)
      page.skipped.push_back(fmt::format("{}: {}: {}", score.name, row.id, row.reason));
  }
  write(arguments, html_page(page));
}

std::unique_ptr<RowSink> page_sink(const Arguments& arguments, std::vector<RowColumn> columns,
                                   const std::string& name) {
  return std::make_unique<PageSink>(arguments, std::move(columns), name);
}

}  // namespace stagecraft
