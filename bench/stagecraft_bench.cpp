// stagecraft-bench: how fast are building and running a task graph?
//
// Each benchmark reports tasks per second, the simulated milliseconds (so that one sees what was simulated)
// and the peak of resident memory while it ran. Run on an idle machine from a Release build.
#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

#include "bench/workload_a.hpp"
#include "sim/engine/engine.hpp"

namespace stagecraft {
namespace {

// Linux keeps the peak of a process; writing 5 there sets it back to the present value (proc(5), clear_refs).
// Where that is not allowed, the figure is the peak of the whole process so far.
void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word)
    if (word == "VmHWM:") status >> kib;
  return kib * 1024 / 1e6;
}

WorkloadA workload_of(const benchmark::State& state) {
  return {.stages = static_cast<int>(state.range(0)),
          .micro_batches = static_cast<int>(state.range(1)),
          .replicas = static_cast<int>(state.range(2)),
          .folded = state.range(3) != 0};
}

void report(benchmark::State& state, const WorkloadA& workload, const Timeline& timeline) {
  const auto tasks = static_cast<double>(task_count(workload));
  state.counters["tasks"] = tasks;
  state.counters["tasks/s"] =
      benchmark::Counter(tasks * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["simulated_ms"] = to_seconds(timeline.makespan) * 1e3;
  state.counters["peak_MB"] = peak_memory_mb();
}

void build_workload(benchmark::State& state) {
  const WorkloadA workload = workload_of(state);
  reset_peak_memory();
  for (auto _ : state) benchmark::DoNotOptimize(build(workload));
  report(state, workload, run(build(workload)));
}

void run_workload(benchmark::State& state) {
  const WorkloadA workload = workload_of(state);
  const Program program = build(workload);
  Timeline timeline;
  reset_peak_memory();
  for (auto _ : state) {
    timeline = {};
    timeline = run(program);
  }
  report(state, workload, timeline);
}

void end_to_end(benchmark::State& state) {
  const WorkloadA workload = workload_of(state);
  Timeline timeline;
  reset_peak_memory();
  for (auto _ : state) {
    timeline = {};
    timeline = run(build(workload));
  }
  report(state, workload, timeline);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"p", "m", "d", "folded"})->Unit(benchmark::kMillisecond);
  benchmark->Args({8, 64, 1, 0})->Args({16, 128, 1, 0})->Args({64, 512, 1, 0});
  benchmark->Args({64, 512, 4, 0})->Args({64, 512, 16, 1})->Args({64, 512, 16, 0});
}

BENCHMARK(build_workload)->Apply(sizes);
BENCHMARK(run_workload)->Apply(sizes);
BENCHMARK(end_to_end)->Apply(sizes);

}  // namespace
}  // namespace stagecraft

BENCHMARK_MAIN();
