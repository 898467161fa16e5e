#include <fmt/format.h>

#include <ostream>
#include <set>

#include "base/text.hpp"
#include "sim/diff/trace_diff.hpp"
#include "sim/study/reasons.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/kineto_traces.hpp"

namespace stagecraft {
namespace {

constexpr int kMostRanks = 100'000'000;

// A mistake about the trace, or about how the two go together.
class TraceChecks {
 public:
  TraceChecks(const MeasuredTrace& measured, Diagnostics& diagnostics)
      : measured_(measured), diagnostics_(diagnostics) {}

  // A rank has one GPU.
  void one_device() {
    std::set<int> devices;
    for (const KinetoKernel& kernel : measured_.trace.kernels) devices.insert(kernel.device);
    if (devices.size() > 1)
      diagnostics_.error(
          {.code = "several-devices",
           .where = {measured_.name, 0, 0},
           .message = fmt::format("has kernels of {} GPUs, and a rank has one", devices.size()),
           .hint = "give the trace of one process with one GPU"});
  }

  // The rank that is compared: --rank, else the trace's own, else 0.
  int rank(const std::optional<int>& asked, int gpus) {
    const std::optional<int>& said = measured_.trace.rank;
    if (asked && said && *asked != *said)
      warn("other-rank",
           fmt::format("is of rank {}, and is compared with the prediction of rank {}", *said, *asked));
    if (!asked && !said) warn("no-rank", "does not say its rank: rank 0 is taken; --rank N says it");
    const int rank = asked.value_or(said.value_or(0));
    if (rank >= gpus)
      diagnostics_.error({.code = "no-such-rank",
                          .where = {measured_.name, 0, 0},
                          .message = fmt::format("rank {} of a scenario with {} GPUs", rank, gpus),
                          .hint = "ranks count from 0; --rank N chooses another"});
    return rank;
  }

  void device(const Scenario& scenario) {
    const std::string& name = measured_.trace.device;
    if (!name.empty() && scenario.profile && name != scenario.profile->device.name)
      warn("other-device",
           fmt::format("ran on {}, the scenario's profile is of {}", name, scenario.profile->device.name));
  }

  void world(int gpus) {
    const std::optional<int>& size = measured_.trace.world_size;
    if (size && *size != gpus)
      warn("world-size", fmt::format("is of a job of {} ranks, the scenario has {} GPUs", *size, gpus));
  }

 private:
  void warn(std::string code, std::string message) {
    diagnostics_.warning({.code = std::move(code),
                          .where = {measured_.name, 0, 0},
                          .message = std::move(message),
                          .hint = {}});
  }

  const MeasuredTrace& measured_;
  Diagnostics& diagnostics_;
};

void check_scenario(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.group_profiles.empty()) return;
  diagnostics.error({.code = "not-supported-yet",
                     .where = {scenario.source, 0, 0},
                     .path = "cluster",
                     .message = "a trace is not compared with a cluster of several devices yet",
                     .hint = "give the scenario of the rank's own kind of node"});
}

int answer_diff(const Scenario& scenario, const std::string& file, const Arguments& arguments,
                Session& session) {
  std::optional<int> asked;
  if (arguments.has("rank")) asked = arguments.integer("rank", {}, 0, kMostRanks);
  Diagnostics diagnostics;
  check_scenario(scenario, diagnostics);
  const std::optional<MeasuredTrace> measured = load_measured_trace(file, arguments, diagnostics);
  std::optional<TraceDiff> diff;
  int refusal = kWrongInput;
  if (measured && !diagnostics.has_errors()) {
    const Simulation simulation = simulate_in_full(scenario);
    const int gpus = simulation.prepared.plan.gpus();
    TraceChecks checks(*measured, diagnostics);
    checks.one_device();
    checks.device(scenario);
    checks.world(gpus);
    const int rank = checks.rank(asked, gpus);
    if (!simulation.report.finishes()) {
      if (!diagnostics.has_errors()) refusal = kAnswerIsNo;
      diagnostics.error(never_ends(scenario));
    }
    if (!diagnostics.has_errors())
      diff = make_trace_diff(predicted_rank(scenario, simulation, rank),
                             measured_rank(*measured, simulation.prepared.plan, rank), *measured,
                             {.scenario = scenario.source, .trace = measured->name, .rank = rank});
  }
  print_diagnostics(diagnostics.sorted(), arguments, session, "nothing was compared");
  if (!diff) return refusal;
  const bool json = arguments.has("json") || arguments.text("format") == "json";
  session.out << (json ? with_origin(render_json(*diff), scenario) + "\n" : render_text(*diff));
  return kDone;
}

}  // namespace

int diff_command(const Arguments& arguments, Session& session) {
  refuse_two_forms(arguments);
  const std::vector<std::string>& words = arguments.words();
  if (words.size() != 2)
    throw UsageError("`diff` takes a scenario and a trace", "stagecraft diff my.yaml rank0.json.gz");
  if (words[1].ends_with(".yaml") || words[1].ends_with(".yml"))
    throw UsageError(
        fmt::format("`diff` takes a scenario and a trace, and {} is no trace", in_quotes(words[1])),
        fmt::format("of two scenarios: stagecraft compare {} {}", words[0], words[1]));
  if (words[0] == "-" && words[1] == "-")
    throw UsageError("standard input can be read only once", "give - once");
  return for_each_scenario(
      {words[0]}, arguments, session,
      [&](const Scenario& scenario, Session& own) { return answer_diff(scenario, words[1], arguments, own); },
      {.warnings = LoadWarnings::kOnStandardError});
}

}  // namespace stagecraft
