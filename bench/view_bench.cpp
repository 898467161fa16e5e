// How fast are traces written, and how large are they?
//
//   write_trace   workload A as a Perfetto trace, to a file that is gone afterwards; without building and
//                 running it. Target: 3.1 M nodes unfolded in <= 3 s and <= 150 MB.
//   write_page    the flagship's HTML page, in memory; without simulating it. Target: <= 1 s and < 3 MB.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <optional>
#include <string_view>

#include "base/check.hpp"
#include "bench/workload_a.hpp"
#include "sim/engine/engine.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"
#include "sim/view/lanes.hpp"
#include "sim/view/run_view.hpp"
#include "sim/view/trace.hpp"

namespace stagecraft {
namespace {

void write_trace(benchmark::State& state) {
  const WorkloadA workload{.stages = static_cast<int>(state.range(0)),
                           .micro_batches = static_cast<int>(state.range(1)),
                           .replicas = static_cast<int>(state.range(2))};
  const Program program = build(workload);
  const Timeline timeline = run(program);
  std::size_t bytes = 0;
  for (auto _ : state) {
    std::FILE* file = std::tmpfile();
    SC_CHECK(file != nullptr, "a temporary file");
    bytes = 0;
    write_perfetto(
        {.program = program, .timeline = timeline, .ranks = rank_names(program, workload.stages)},
        [&](std::string_view piece) { bytes += std::fwrite(piece.data(), 1, piece.size(), file); });
    std::fclose(file);
  }
  state.counters["tasks"] = static_cast<double>(program.task_count());
  state.counters["MB"] = static_cast<double>(bytes) / 1e6;
}

BENCHMARK(write_trace)
    ->ArgNames({"p", "m", "d"})
    ->Unit(benchmark::kMillisecond)
    ->Args({8, 64, 1})
    ->Args({64, 512, 4})
    ->Args({64, 512, 16});

void write_page(benchmark::State& state) {
  const DataDirectory data{.root = STAGECRAFT_SOURCE_DIR};
  Diagnostics diagnostics;
  const std::optional<Scenario> scenario =
      load_scenario(data.root / "scenarios" / "gpt3-175b-1024xA100.yaml", {}, data, diagnostics);
  SC_CHECK(scenario.has_value(), "the flagship loads");
  const Simulation simulation = simulate_in_full(*scenario);
  std::size_t bytes = 0;
  for (auto _ : state)
    bytes = html_page(RunPage{.head = {.title = scenario->name, .command = {}, .version = {}},
                              .runs = {run_view(*scenario, simulation)}})
                .size();
  state.counters["MB"] = static_cast<double>(bytes) / 1e6;
}
BENCHMARK(write_page)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stagecraft
