#include "sim/scenario/scenario_hash.hpp"

#include <string_view>
#include <variant>

#include "base/hash.hpp"
#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {
namespace {

// Nothing of times that are not from a file.
void add(StableHash& hash, const RepairSpec& repair) {
  if (repair.file.empty()) return;
  for (const Duration time : repair.times) hash.add(time.count());
}

void add(StableHash& hash, const FailureSpec& failures) {
  for (const FailureProcess& process : failures.processes) {
    if (const auto* replay = std::get_if<TraceReplay>(&process.law))
      hash.add(std::string_view(replay->trace.hash));
    for (const Cause& cause : process.causes)
      if (cause.repair) add(hash, *cause.repair);
  }
  add(hash, failures.repair);
}

// Without its name, which is the file's where it is not given, and with the replicas that its other degrees leave:
// neither of these, written or not, moves a figure.
Scenario as_it_runs(Scenario scenario) {
  scenario.name.clear();
  ParallelSpec& parallel = scenario.parallelism;
  if (!parallel.data) parallel.data = static_cast<int>(replicas_of(scenario) / parallel.context);
  return scenario;
}

void add(StableHash& hash, const Scenario& scenario) {
  hash.add(std::string_view(to_yaml(as_it_runs(scenario))));
  if (scenario.order) hash.add(std::string_view(scenario.order->hash));
  if (scenario.failures) add(hash, *scenario.failures);
  for (const OtherJob& job : scenario.jobs) add(hash, job.scenario);
}

}  // namespace

std::string scenario_hash(const Scenario& scenario) {
  StableHash hash;
  add(hash, scenario);
  return hash.hex();
}

}  // namespace stagecraft
