// How fast are traces written, and how large are they?
//
//   write_trace   workload A as a Perfetto trace, to a file that is gone afterwards; without building and
//   running
//                 it. Target: 3.1 M nodes unfolded in <= 3 s and <= 150 MB.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string_view>

#include "base/check.hpp"
#include "bench/workload_a.hpp"
#include "sim/engine/engine.hpp"
#include "sim/view/lanes.hpp"
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

}  // namespace
}  // namespace stagecraft
