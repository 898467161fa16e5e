// How fast are orders made, measured and searched for? Rows of stagecraft-bench; span_bubble says how good
// they are.
//
// Costs are those that Qi et al. (arXiv 2401.10241, appendix) measured for a 28.3B model, in nanoseconds.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "sim/schedule/evaluate.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/search.hpp"

namespace stagecraft {
namespace {

ScheduleCosts measured_costs() {
  return {.stages = {{10'402'000, 10'248'000, 7'698'000}}, .message = 460'000};
}

void report_order(benchmark::State& state, const Evaluation& evaluation) {
  const auto work = static_cast<double>(std::ranges::max(evaluation.busy));
  state.counters["span_bubble"] = static_cast<double>(evaluation.span) / work - 1;
  state.counters["peak"] = std::ranges::max(evaluation.peak_in_flight);
}

void evaluate_one_f_one_b(benchmark::State& state) {
  const Schedule schedule = generate(
      *find_schedule("1f1b"),
      {.ranks = static_cast<int>(state.range(0)), .micro_batches = static_cast<int>(state.range(1))});
  Evaluation evaluation;
  for (auto _ : state) benchmark::DoNotOptimize(evaluation = evaluate(schedule, measured_costs()));
  report_order(state, evaluation);
}

void make_zb_2p(benchmark::State& state) {
  const PipelineShape shape{.ranks = static_cast<int>(state.range(0)),
                            .micro_batches = static_cast<int>(state.range(1))};
  Schedule schedule;
  for (auto _ : state) schedule = generate(*find_schedule("zb-2p"), shape, measured_costs());
  report_order(state, evaluate(schedule, measured_costs()));
}

void search_order(benchmark::State& state) {
  SearchRequest request{
      .shape = {.ranks = static_cast<int>(state.range(0)), .micro_batches = static_cast<int>(state.range(1))},
      .costs = measured_costs()};
  request.costs.memory_limit = static_cast<int>(state.range(2));
  OrderSearchResult result;
  for (auto _ : state) result = search_schedule(request);
  report_order(state, result.evaluation);
  state.counters["gap"] = static_cast<double>(result.length) / static_cast<double>(result.lower_bound) - 1;
}

BENCHMARK(evaluate_one_f_one_b)->ArgNames({"p", "m"})->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(make_zb_2p)->ArgNames({"p", "m"})->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(search_order)
    ->ArgNames({"p", "m", "limit"})
    ->Args({32, 256, 16})
    ->Args({32, 256, 32})
    ->Args({32, 256, 64})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stagecraft
