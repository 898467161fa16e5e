#include "tools/commands/kineto_traces.hpp"

#include <fmt/format.h>

#include <charconv>
#include <ostream>

#include "base/text.hpp"
#include "base/text_file.hpp"
#include "formats/import_entries.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/command_line/trace_stream.hpp"
#include "tools/commands/import_jobs.hpp"

namespace stagecraft {
namespace {

constexpr int kMostGpusOfNode = 1024;

std::vector<std::int64_t> asked_step_numbers(const Arguments& arguments) {
  std::vector<std::int64_t> numbers;
  for (const std::string& word : arguments.all("step")) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 0)
      throw UsageError(fmt::format("--step: {} is no number of a step", in_quotes(word)),
                       "the N of ProfilerStep#N; may be repeated");
    numbers.push_back(number);
  }
  return numbers;
}

// "steps 5, 6 (1 left out)"; "all of it" where the trace has no steps.
std::string steps_text(const MeasuredTrace& measured) {
  std::vector<std::string> numbers;
  for (const std::int32_t step : measured.steps)
    numbers.push_back(std::to_string(measured.trace.steps[static_cast<std::size_t>(step)].number));
  if (numbers.size() == 1 && numbers.front() == "-1") return "all of it";
  const std::size_t left = measured.trace.steps.size() - numbers.size();
  return fmt::format("{} {}{}", plural(std::ssize(numbers), "step"), join(numbers, ", "),
                     left == 0 ? "" : fmt::format(" ({} left out)", left));
}

// --device supplies a name that a trace lacks.
void take_asked_device(MeasuredTrace& measured, const std::optional<std::string>& asked,
                       Diagnostics& diagnostics) {
  std::string& device = measured.trace.device;
  if (!asked || device == *asked) return;
  if (device.empty())
    device = *asked;
  else
    diagnostics.error(contradicted_option("--device", *asked, device, {.file = measured.name}));
}

}  // namespace

std::optional<MeasuredTrace> load_measured_trace(const std::string& file, const Arguments& arguments,
                                                 Diagnostics& diagnostics) {
  const std::vector<std::int64_t> asked = asked_step_numbers(arguments);
  const std::string name = place_name(file);
  std::optional<KinetoTrace> trace;
  Diagnostics here;  // of a damaged file zlib knows more than the reader of its text
  const ErrorWatch watch(diagnostics);
  with_trace_stream(file, diagnostics, [&](std::istream& in) { trace = read_kineto(in, name, here); });
  if (!watch.clean()) return std::nullopt;
  diagnostics.add_all(here);
  if (!trace) return std::nullopt;
  std::optional<std::vector<std::int32_t>> steps = measured_steps(*trace, asked, name, diagnostics);
  if (!steps) return std::nullopt;
  return MeasuredTrace{.name = name, .trace = *std::move(trace), .steps = *std::move(steps)};
}

int import_kineto_traces(const std::vector<std::string>& words, const Arguments& arguments,
                         Session& session) {
  const int gpus = arguments.integer("gpus-per-node", 0, 1, kMostGpusOfNode);
  const std::optional<std::string> device = asked_device(arguments);
  Diagnostics diagnostics;
  std::vector<MeasuredTrace> traces;
  for (const std::string& file : words) {
    std::optional<MeasuredTrace> trace = load_measured_trace(file, arguments, diagnostics);
    if (!trace) continue;
    take_asked_device(*trace, device, diagnostics);
    traces.push_back(*std::move(trace));
  }
  KinetoSamples samples;
  if (!diagnostics.has_errors()) samples = kineto_samples(traces, gpus, diagnostics);
  print_diagnostics(diagnostics.sorted(), arguments, session, kNothingImported);
  if (diagnostics.has_errors()) return kWrongInput;
  for (const Sample& sample : samples.samples) session.out << kYamlItem << to_json_line(sample) << '\n';
  if (arguments.has("quiet")) return kDone;
  for (const MeasuredTrace& trace : traces)
    session.err << fmt::format("{}: {}, {}\n", trace.name, steps_text(trace),
                               counted(std::ssize(trace.trace.kernels), "kernel"));
  session.err << fmt::format("{} of a training run: its clocks, its contention\n",
                             counted(std::ssize(samples.samples), "sample"));
  for (const auto& [why, count] : samples.unused) session.err << fmt::format("not used: {} {}\n", count, why);
  return kDone;
}

}  // namespace stagecraft
