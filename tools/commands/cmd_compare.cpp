#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "sim/study/compare.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/command_line/vary_option.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/page_files.hpp"
#include "tools/tables/compare_table.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostVariants = 10'000;
constexpr const char* kExample = "stagecraft compare scenarios/pipeline-4x8.yaml --vary schedule=gpipe,1f1b";

std::vector<Variant> variants_asked_for(const Arguments& arguments, const std::vector<Vary>& varied) {
  const std::vector<std::string>& files = arguments.words();
  check_scenario_names(files, kExample);
  if (files.size() < 2 && varied.empty()) throw UsageError("there is nothing to compare", kExample);
  refuse_more_variants(kMostVariants, files, varied);
  return variants_of(files, arguments.all("set"), varied);
}

// What a report would say of the varied keys: values that change nothing, or less than they seem to.
void add_words_on_varied(Comparison& comparison) {
  for (Outcome& outcome : comparison.outcomes) {
    if (!outcome.report) continue;
    for (const Diagnostic& warning : outcome.scenario->warnings)
      if (std::ranges::find(comparison.paths, warning.path) != comparison.paths.end() &&
          std::ranges::find(outcome.diagnostics, warning) == outcome.diagnostics.end())
        outcome.diagnostics.push_back(warning);
  }
}

// `--json` is the same as `--format json`, as everywhere.
std::string format_of(const Arguments& arguments) {
  return arguments.has("json") ? "json" : arguments.text("format").value_or("text");
}

void print(const Comparison& comparison, const Arguments& arguments, Session& session) {
  const std::string format = format_of(arguments);
  if (format == "json") {
    for (std::size_t i = 0; i < comparison.outcomes.size(); ++i)
      session.out << render_json(comparison, i) << '\n';
    return;
  }
  print_warnings(diagnostics_of(comparison.outcomes), arguments, session);
  if (format == "csv")
    session.out << render_csv(comparison);
  else
    session.out << (format == "markdown" ? render_markdown(comparison) : render_text(comparison));
}

// Says on standard error which assertions the variant misses. A dead node is an answer, as in `run`.
int code_of(const Outcome& outcome, const std::string& name, Session& session) {
  if (!outcome.report) return outcome.stopped ? kAnswerIsNo : kWrongInput;
  for (Diagnostic missed : outcome.missed) {
    missed.message = name + ": " + missed.message;
    session.err << render(missed) << '\n';
  }
  return outcome.missed.empty() ? kDone : kAnswerIsNo;
}

}  // namespace

int compare_command(const Arguments& arguments, Session& session) {
  refuse_two_forms(arguments);
  const std::vector<Vary> varied = varied_by(arguments);
  Comparison comparison{.paths = {}, .variants = variants_asked_for(arguments, varied), .outcomes = {}};
  for (const Vary& vary : varied) comparison.paths.push_back(vary.path);
  print_warnings(overruled_settings(arguments, varied_paths(varied)), arguments, session);
  comparison.outcomes =
      simulate_variants(comparison.variants, with_standard_input(arguments, session), jobs_of(arguments));
  add_words_on_varied(comparison);
  for (Outcome& outcome : comparison.outcomes)
    for (std::vector<Diagnostic>* said : {&outcome.diagnostics, &outcome.missed})
      say_vary(*said, comparison.paths);
  const auto stopped = [](const Outcome& outcome) { return outcome.stopped; };  // that is an answer
  if (format_of(arguments) != "json" && std::ranges::none_of(comparison.outcomes, stopped) &&
      told_shared_mistakes(comparison.outcomes, arguments, session))
    return kWrongInput;
  print(comparison, arguments, session);
  if (arguments.has("html")) write_page(arguments, comparison);
  const VariantNames names(comparison);
  int worst = kDone;
  for (std::size_t i = 0; i < comparison.outcomes.size(); ++i)
    worst = std::max(worst, code_of(comparison.outcomes[i], names.spoken(i), session));
  return worst;
}

}  // namespace stagecraft
