#include "tools/view_files.hpp"

#include <fmt/format.h>

#include "sim/view/lanes.hpp"
#include "sim/view/run_view.hpp"
#include "sim/view/trace.hpp"
#include "tools/files.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kPerfetto = ".pftrace", kChrome = ".json";

void write_trace(const std::string& file, bool replace, const Simulation& simulation) {
  const TraceInput input{.program = simulation.program,
                         .timeline = simulation.timeline,
                         .ranks = rank_names(simulation.program, simulation.prepared.plan.pipeline)};
  const auto write = file.ends_with(kChrome) ? write_chrome_trace : write_perfetto;
  Diagnostics diagnostics;
  write_file_in_pieces(
      file, replace, [&](const TakePiece& take) { write(input, take); }, diagnostics);
  diagnostics.throw_if_errors();
}

// The words of the command line again; those with blanks or signs in quotes.
std::string command_of(const Arguments& arguments, std::string_view command) {
  std::string line = fmt::format("stagecraft {}", command);
  const auto add = [&line](const std::string& word) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:+%@";
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    line += plain ? " " + word : " '" + word + "'";
  };
  for (const std::string& word : arguments.words()) add(word);
  for (const char* const option : {"set", "vary"})
    for (const std::string& value : arguments.all(option)) line += fmt::format(" --{}", option), add(value);
  if (arguments.has("unfold")) line += " --unfold";
  return line;
}

void write_page(const Arguments& arguments, const std::string& page) {
  Diagnostics diagnostics;
  write_text_file(*arguments.text("html"), page, arguments.has("force"), diagnostics);
  diagnostics.throw_if_errors();
}

}  // namespace

bool wants_views(const Arguments& arguments) {
  for (const char* const option : {"trace", "html"}) {
    const std::optional<std::string> file = arguments.text(option);
    if (!file) continue;
    if (arguments.words().size() > 1)
      throw UsageError(
          fmt::format("--{} writes one file, and there are {} scenarios", option, arguments.words().size()),
          "run them one by one");
  }
  const std::optional<std::string> trace = arguments.text("trace");
  if (trace && !trace->ends_with(kPerfetto) && !trace->ends_with(kChrome))
    throw UsageError(
        fmt::format("--trace {}: the end of the name says which form, and this says none", *trace),
        ".pftrace for Perfetto, .json for Chrome");
  return trace.has_value() || arguments.has("html");
}

void write_views(const Arguments& arguments, const Scenario& scenario, const Simulation& simulation) {
  const bool replace = arguments.has("force");
  if (const auto file = arguments.text("trace")) write_trace(*file, replace, simulation);
  if (arguments.has("html"))
    write_page(arguments, html_page(RunPage{.title = scenario.name,
                                            .command = command_of(arguments, "run"),
                                            .version = "stagecraft " STAGECRAFT_VERSION,
                                            .runs = {run_view(scenario, simulation)}}));
}

}  // namespace stagecraft
