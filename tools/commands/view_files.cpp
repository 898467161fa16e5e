#include "tools/commands/view_files.hpp"

#include <fmt/format.h>

#include "sim/price_iteration.hpp"
#include "sim/report/measure.hpp"
#include "sim/view/chakra.hpp"
#include "sim/view/lanes.hpp"
#include "sim/view/trace.hpp"
#include "tools/command_line/files.hpp"
#include "tools/commands/page_files.hpp"

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

void write_chakra(const std::string& prefix, bool replace, const Scenario& scenario,
                  const Simulation& simulation) {
  Diagnostics diagnostics;
  if (const auto refusal = no_chakra_because(simulation.program, simulation.timeline))
    diagnostics.error({.code = "no-trace",
                       .where = {.file = scenario.source},
                       .message = "is no Chakra trace: " + refusal->why,
                       .hint = refusal->hint});
  diagnostics.throw_if_errors();
  const std::vector<std::string> files =
      chakra_traces({.program = simulation.program,
                     .timeline = simulation.timeline,
                     .messages = message_bytes(scenario, simulation.prepared.plan)});
  const auto name_of = [&](std::size_t rank) { return fmt::format("{}.{}.et", prefix, rank); };
  for (std::size_t rank = 0; rank < files.size(); ++rank)
    (void)may_write(name_of(rank), replace, diagnostics);
  diagnostics.throw_if_errors();  // all or none
  for (std::size_t rank = 0; rank < files.size(); ++rank)
    write_text_file(name_of(rank), files[rank], replace, diagnostics);
  diagnostics.throw_if_errors();
}

}  // namespace

bool wants_views(const Arguments& arguments) {
  bool wanted = false;
  for (const char* const option : {"trace", "html", "chakra"}) {
    if (!arguments.has(option)) continue;
    wanted = true;
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
  return wanted;
}

std::optional<std::string> word_on_iterations(const Simulation& simulation) {
  const Window window = iteration_window(simulation.program, simulation.timeline);
  if (window.length() == simulation.timeline.makespan) return std::nullopt;
  return fmt::format(
      "the files show all iterations that were simulated; the report is of the one from {} to {}",
      human(window.begin), human(window.end));
}

void write_views(const Arguments& arguments, const Scenario& scenario, const Simulation& simulation) {
  const bool replace = arguments.has("force");
  if (const auto file = arguments.text("trace")) write_trace(*file, replace, simulation);
  if (const auto prefix = arguments.text("chakra")) write_chakra(*prefix, replace, scenario, simulation);
  if (arguments.has("html")) write_page(arguments, scenario, simulation);
}

}  // namespace stagecraft
