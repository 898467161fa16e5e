// How fast is a pipeline order made, checked and played? No model, no task graph: integers only.
#include <benchmark/benchmark.h>

#include <stdexcept>

#include "sim/schedule/play.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

void schedule_lab(benchmark::State& state, const char* name, int chunks) {
  const PipelineShape shape{.ranks = static_cast<int>(state.range(0)),
                            .micro_batches = static_cast<int>(state.range(1)),
                            .chunks = chunks};
  std::size_t passes = 0;
  for (auto _ : state) {
    const Schedule schedule = generate(*find_schedule(name), shape);
    if (!check(schedule).empty()) throw std::logic_error("an order of ours is invalid");
    benchmark::DoNotOptimize(play(schedule, {}).makespan);
    passes = 0;
    for (const auto& order : schedule.ranks) passes += order.size();
  }
  state.counters["passes"] = static_cast<double>(passes);
}

BENCHMARK_CAPTURE(schedule_lab, 1f1b, "1f1b", 1)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule_lab, interleaved_1f1b, "interleaved-1f1b", 2)
    ->Args({64, 512})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule_lab, zb_v, "zb-v", 2)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule_lab, dualpipe, "dualpipe", 1)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule_lab, dualpipe_v, "dualpipe-v", 2)->Args({64, 512})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stagecraft
