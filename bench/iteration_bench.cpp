// How long one prediction takes, from a scenario to its report: GPT-3 175B on 1,024 GPUs, with the network in
// closed form and with shared links. Target: 2 s with shared links.
#include <benchmark/benchmark.h>

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {
namespace {

Scenario flagship(NetworkMode mode) {
  const DataDirectory data{.root = STAGECRAFT_SOURCE_DIR};
  Diagnostics diagnostics;
  auto scenario = load_scenario(data.root / "scenarios" / "gpt3-175b-1024xA100.yaml", {}, data, diagnostics);
  diagnostics.throw_if_errors();
  scenario->network.mode = mode;
  return *std::move(scenario);
}

void predict(benchmark::State& state, NetworkMode mode) {
  const Scenario scenario = flagship(mode);
  Report report;
  for (auto _ : state) report = simulate(scenario);
  state.counters["tasks"] = static_cast<double>(report.tasks);
  state.counters["links"] = static_cast<double>(report.network.links.size());
  state.counters["simulated_ms"] = to_seconds(report.iteration_time) * 1e3;
}

BENCHMARK_CAPTURE(predict, closed_form, NetworkMode::kClosedForm)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict, flow, NetworkMode::kFlow)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stagecraft
