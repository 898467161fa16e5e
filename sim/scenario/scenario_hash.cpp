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

void add(StableHash& hash, const Scenario& scenario) {
  hash.add(std::string_view(to_yaml(scenario)));
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
