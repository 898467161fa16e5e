// stagecraft-bench: how fast are building and running a task graph?
//
//   build_workload, run_workload, end_to_end   workload A, bench/workload_a.hpp
//   ring_all_reduce                            workload B, and C1 on a fat tree, bench/workload_b.hpp
//   ring_all_reduce_closed_form                workload B as one price, its cluster given or built anew
//                                              (beside ring_all_reduce/ring of the same N)
//   random_messages                            workload C2, bench/workload_c.hpp
//
// Each benchmark reports tasks per second, the simulated milliseconds (so that one sees what was simulated)
// and the peak of resident memory while it ran. Run on an idle machine from a Release build.
#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

#include "bench/workload_a.hpp"
#include "bench/workload_b.hpp"
#include "bench/workload_c.hpp"
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

void report(benchmark::State& state, std::size_t count, const Timeline& timeline) {
  const auto tasks = static_cast<double>(count);
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
  report(state, task_count(workload), run(build(workload)));
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
  report(state, task_count(workload), timeline);
}

template <class Workload>
void build_and_run(benchmark::State& state, const Workload& workload) {
  Timeline timeline;
  reset_peak_memory();
  for (auto _ : state) {
    timeline = {};
    timeline = run(build(workload));
  }
  report(state, task_count(workload), timeline);
}

void end_to_end(benchmark::State& state) {
  build_and_run(state, workload_of(state));
}

void ring_all_reduce(benchmark::State& state, RingNetwork network) {
  build_and_run(state, WorkloadB{.ranks = static_cast<int>(state.range(0)), .network = network});
}

void price_all_reduce(benchmark::State& state, bool with_cluster) {
  const WorkloadB workload{.ranks = static_cast<int>(state.range(0)), .network = RingNetwork::kRing};
  const WorkloadBCluster built = cluster_of(workload);
  Duration time{};
  reset_peak_memory();
  for (auto _ : state)
    benchmark::DoNotOptimize(time = closed_form(with_cluster ? cluster_of(workload) : built));
  state.counters["simulated_ms"] = to_seconds(time) * 1e3;
  state.counters["peak_MB"] = peak_memory_mb();
}

void random_messages(benchmark::State& state) {
  build_and_run(state, WorkloadC{.hosts = static_cast<int>(state.range(0)),
                                 .messages = static_cast<int>(state.range(1)),
                                 .outstanding = static_cast<int>(state.range(2))});
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"p", "m", "d", "folded"})->Unit(benchmark::kMillisecond);
  benchmark->Args({8, 64, 1, 0})->Args({16, 128, 1, 0})->Args({64, 512, 1, 0});
  benchmark->Args({64, 512, 4, 0})->Args({64, 512, 16, 1})->Args({64, 512, 16, 0});
}

BENCHMARK(build_workload)->Apply(sizes);
BENCHMARK(run_workload)->Apply(sizes);
BENCHMARK(end_to_end)->Apply(sizes);

void ranks(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("N")->Unit(benchmark::kMillisecond)->Arg(64)->Arg(256)->Arg(1024);
}

BENCHMARK_CAPTURE(ring_all_reduce, ring, RingNetwork::kRing)->Apply(ranks);
BENCHMARK_CAPTURE(price_all_reduce, ring, false)->Name("ring_all_reduce_closed_form/price")->Apply(ranks);
BENCHMARK_CAPTURE(price_all_reduce, ring_with_cluster, true)
    ->Name("ring_all_reduce_closed_form/cluster_and_price")
    ->Apply(ranks);
BENCHMARK_CAPTURE(ring_all_reduce, switch, RingNetwork::kSwitch)->Apply(ranks);
BENCHMARK_CAPTURE(ring_all_reduce, fat_tree, RingNetwork::kFatTree)->Apply(ranks);

BENCHMARK(random_messages)
    ->ArgNames({"N", "K", "W"})
    ->Unit(benchmark::kMillisecond)
    ->Args({64, 100, 4})
    ->Args({256, 30, 1})
    ->Args({256, 100, 4})
    ->Args({1024, 4, 1})
    ->Args({1024, 30, 4});

}  // namespace
}  // namespace stagecraft

BENCHMARK_MAIN();
