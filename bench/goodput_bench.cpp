// How fast are weeks under failures? Nothing is simulated inside a step: histories and the job's clock only.
#include <benchmark/benchmark.h>

#include <memory>

#include "sim/goodput/closed_forms.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/run_repeats.hpp"

namespace stagecraft {
namespace {

constexpr int kNodes = 2048;  // of 8 GPUs: the 16,384 of Llama 3 (arXiv 2407.21783, section 3.3.4)

// Its rate, 54 days, three failures in four of the process only; a checkpoint blocks 30 s, a restart takes
// 600 s.
FailureSpec weeks_of_failures() {
  using std::chrono::seconds;
  FailureSpec spec;
  spec.processes.push_back(
      {.law = ExponentialFailures{.rate_per_node_day = 0.0038},
       .causes = {
           {.name = "process", .share = 0.73, .severity = FailureSeverity::kProcess, .detect = seconds(10)},
           {.name = "node", .share = 0.27, .severity = FailureSeverity::kNode, .detect = seconds(10)}}});
  spec.repair = {.kind = RepairKind::kConstant, .time = seconds(86400)};
  spec.horizon = seconds(54 * 86400);
  return spec;
}

// Arguments: repeats, threads.
void checkpoint_restart(benchmark::State& state, CheckpointMode mode) {
  using std::chrono::seconds;
  const FailureSpec failures = weeks_of_failures();
  const ShapedStep step{.duration = seconds(5), .samples = 2048, .nodes = kNodes};
  const double mean = 1 / failures_per_second(failures, kNodes);
  Checkpointing how{.mode = mode, .interval = from_seconds(optimal_interval(30, mean)), .block = seconds(30)};
  how.persist = mode == CheckpointMode::kSync ? Duration{} : seconds(30);
  how.load = seconds(60);
  const JobSpec job{.horizon = failures.horizon, .ideal = step, .checkpointing = how};
  const PolicyFactory policy = [&] {
    return std::make_unique<CheckpointRestart>(CheckpointRestartSpec{
        .nodes = kNodes, .restart = {{1, seconds(600)}}, .gpus_per_node = 8, .shape = [&](int) {
          return step;
        }});
  };
  double fraction = 0, failed = 0;
  for (auto _ : state) {
    const GoodputResult result = run_repeats(
        job, [&](int repeat) { return history_of(failures, kNodes, 1, repeat); }, policy,
        {.repeats = static_cast<int>(state.range(0)), .threads = static_cast<int>(state.range(1))});
    fraction = result.fraction_of_ideal.mean;
    failed = result.failures;
  }
  state.counters["fraction_of_ideal"] = fraction;
  state.counters["failures"] = failed;
}

BENCHMARK_CAPTURE(checkpoint_restart, sync, CheckpointMode::kSync)
    ->Args({100, 1})
    ->Args({100, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(checkpoint_restart, async, CheckpointMode::kAsync)
    ->Args({100, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(checkpoint_restart, in_memory, CheckpointMode::kInMemory)
    ->Args({100, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace stagecraft
