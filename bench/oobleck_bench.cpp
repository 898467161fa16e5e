// How fast is a cluster planned for Oobleck? Rows of stagecraft-bench.
//
// Made-up layers of 30 ms that differ by up to 1 %, the last twice as long; n0 = 4, f = 2, 4 micro-batches a
// node.
#include <benchmark/benchmark.h>

#include <numeric>

#include "sim/goodput/oobleck/plan.hpp"

namespace stagecraft {
namespace {

OobleckSpec cluster(int nodes, int layers) {
  using namespace literals;
  std::vector<LayerCost> costs;
  for (int layer = 0; layer < layers; ++layer)
    costs.push_back(
        {.forward = Duration{10'000'000 + layer * 37 % 101 * 1'000}, .backward = Duration{20'000'000}});
  costs.back().forward *= 2;
  const auto all_reduce = [](int, int gpus) {
    return LayerCost{Duration{200'000 * gpus}, Duration{200'000 * gpus}};
  };
  return {.groups = {{.nodes = nodes, .options = stage_options(costs, 8, all_reduce)}},
          .gpus_per_node = 8,
          .min_nodes = 4,
          .max_failures = 2,
          .micro_batches = 4 * nodes,
          .layer_state = std::vector<Bytes>(costs.size(), 5_GB),
          .links = {.in = 50_GBps, .out = 50_GBps, .latency = Duration{10'000}}};
}

// All templates and the pipelines of all nodes: what a job needs to start.
void plan_templates_and_pipelines(benchmark::State& state) {
  const OobleckSpec spec = cluster(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  std::vector<int> nodes(static_cast<std::size_t>(state.range(0)));
  std::iota(nodes.begin(), nodes.end(), 0);
  for (auto _ : state) {
    OobleckPlanner planner(spec);
    for (int size = planner.range().min_nodes; size <= planner.range().most_nodes; ++size)
      benchmark::DoNotOptimize(planner.templates().find({size}));
    benchmark::DoNotOptimize(planner.compose(nodes));
  }
}

// And what each single failure would do, and the best pipelines of fewer nodes: what `goodput --plan` prints.
void plan_with_every_failure(benchmark::State& state) {
  const OobleckSpec spec = cluster(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) {
    OobleckPlanner planner(spec);
    benchmark::DoNotOptimize(plan_oobleck(planner, {.time = std::chrono::seconds(2)}));
  }
}

BENCHMARK(plan_templates_and_pipelines)
    ->ArgNames({"nodes", "layers"})
    ->Args({100, 48})
    ->Args({1000, 128})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(plan_with_every_failure)
    ->ArgNames({"nodes", "layers"})
    ->Args({100, 48})
    ->Args({1000, 128})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stagecraft
