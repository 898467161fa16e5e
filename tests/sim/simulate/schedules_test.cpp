// Property: every order of the laboratory runs in a scenario, and lasts and holds what the laboratory says.
//
// System: abstract stages on ranks of their own, F = 3, I = 4, W = 2, R = 5 ms, 1 MiB a chunk in flight.
// Expectations: makespan and span of play(), the period where an order never drains, peak_in_flight() MiB.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/schedule/play.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

ScheduleCosts lab_costs(const ScheduleKind& kind) {
  return {.stages = {{.forward = 3 * kMillisecond,
                      .input_gradient = 4 * kMillisecond,
                      .weight_gradient = 2 * kMillisecond,
                      .recompute = kind.recomputes ? 5 * kMillisecond : 0}}};
}

std::string yaml_of(const ScheduleKind& kind, const PipelineShape& shape, const std::string& more = {}) {
  return fmt::format(
      "stagecraft: 1\n"
      "model: {{family: stages, forward: 3 ms, input_gradient: 4 ms, weight_gradient: 2 ms, "
      "activation: 1 MiB, gradient: 1 MiB{}}}\n"
      "parallelism: {{pipeline: {}, virtual_stages: {}}}\n"
      "schedule: {{name: {}, micro_batch_group: {}{}}}\n"
      "training: {{global_batch_size: {}}}\n",
      kind.recomputes ? ", recompute: 5 ms" : "", shape.ranks, shape.chunks, kind.name, shape.group, more,
      shape.micro_batches);
}

// Legal shapes of a kind, small and large.
std::vector<PipelineShape> shapes_of(const ScheduleKind& kind) {
  std::vector<PipelineShape> shapes;
  for (const int p : {2, 3, 4, 6, 8}) {
    for (const int m : {1, 2, 4, 6, 8, 12, 16, 24}) {
      for (const int v : {1, 2, 4}) {
        const PipelineShape shape{.ranks = p, .micro_batches = m, .chunks = v, .group = 0};
        if (!kind.constraint(shape)) shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

void expect_held(const MemoryLedger& memory, const ScheduleKind& kind, const PipelineShape& shape,
                 const std::vector<int>& peaks) {
  const int copies = places_of(kind.placement, shape).copies();
  ASSERT_EQ(memory.stages.size(), peaks.size());
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    const StageMemory& held = memory.stages[rank];
    EXPECT_EQ(held.of(MemoryClass::kActivations), Bytes(std::int64_t{peaks[rank]} << 20)) << "rank " << rank;
    EXPECT_EQ(held.of(MemoryClass::kGradients), Bytes(std::int64_t{shape.chunks * copies} << 20));
    EXPECT_EQ(held.moment.in_flight, peaks[rank]) << "rank " << rank;
  }
}

class EverySchedule : public testing::TestWithParam<ScheduleKind> {};

TEST_P(EverySchedule, LastsAndHoldsInAScenarioWhatTheLaboratorySays) {
  const ScheduleKind& kind = GetParam();
  const std::vector<PipelineShape> shapes = shapes_of(kind);
  ASSERT_GE(shapes.size(), 5U);
  for (const PipelineShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << "p=" << shape.ranks << " m=" << shape.micro_batches
                                    << " v=" << shape.chunks);
    const ScheduleCosts costs = lab_costs(kind);
    const Schedule schedule = generate(kind, shape, costs);
    const Report report = simulate(scenario_of(yaml_of(kind, shape)));
    expect_held(report.memory, kind, shape, peak_in_flight(schedule));
    EXPECT_EQ(sum_of(report.breakdown), report.iteration_time);
    if (!kind.flush) {
      EXPECT_EQ(report.iteration_time, Duration(period(schedule, costs)));
      EXPECT_EQ(report.bubble.span, report.iteration_time);
      continue;
    }
    const Play times = play(schedule, costs);
    EXPECT_EQ(report.iteration_time, Duration(times.makespan));
    EXPECT_EQ(report.bubble.makespan, Duration(times.makespan));
    EXPECT_EQ(report.bubble.span, Duration(times.span));
    EXPECT_EQ(report.bubble.ideal, Duration(times.ideal()));
  }
}

// On the GPUs of one node every message between ranks takes the same; what stays on a rank takes none.
TEST_P(EverySchedule, WaitsForItsMessagesAsInTheLaboratory) {
  const ScheduleKind& kind = GetParam();
  for (const PipelineShape& shape : shapes_of(kind)) {
    if (shape.micro_batches > 12) continue;
    SCOPED_TRACE(testing::Message() << "p=" << shape.ranks << " m=" << shape.micro_batches
                                    << " v=" << shape.chunks);
    const Simulation simulation = simulate_in_full(scenario_of(
        yaml_of(kind, shape) + fmt::format("cluster: {{node: dgx-a100-80gb, gpus: {}}}\n", shape.ranks)));
    ScheduleCosts costs = lab_costs(kind);
    costs.message = simulation.prices.edges.front().forward.total().count();
    ASSERT_GT(costs.message, 0);
    const Schedule schedule = generate(kind, shape, costs);
    const Bubble& bubble = simulation.report.bubble;
    if (kind.flush) {
      EXPECT_EQ(bubble.makespan, Duration(play(schedule, costs).makespan));
      EXPECT_EQ(bubble.span, Duration(play(schedule, costs).span));
    } else {
      // Rounds of messages do not divide evenly over iterations: two that follow each other may differ by
      // one.
      const Duration lab(period(schedule, costs)), here = simulation.report.iteration_time;
      EXPECT_LE(std::max(lab, here) - std::min(lab, here), Duration(2 * costs.message));
    }
    EXPECT_EQ(sum_of(simulation.report.breakdown), simulation.report.iteration_time);
  }
}

// A pair takes what its share says, in the laboratory and in the scenario.
TEST_P(EverySchedule, FusesPairsAlike) {
  const ScheduleKind& kind = GetParam();
  if (!kind.fused_pairs) return;  // nothing to fuse
  for (const PipelineShape& shape : shapes_of(kind)) {
    ScheduleCosts costs = lab_costs(kind);
    costs.fused = 0.75;
    const Play times = play(generate(kind, shape, costs), costs);
    const Report report = simulate(scenario_of(yaml_of(kind, shape, ", fused_share: 0.75")));
    EXPECT_EQ(report.iteration_time, Duration(times.makespan));
    EXPECT_EQ(sum_of(report.breakdown), report.iteration_time);
  }
}

// Without a barrier the next iteration follows as soon as each rank is ready for it.
TEST_P(EverySchedule, FollowsItselfInItsPeriodWhereNoStepWaits) {
  const ScheduleKind& kind = GetParam();
  const ScheduleCosts costs = lab_costs(kind);
  for (const PipelineShape& shape : shapes_of(kind)) {
    if (!kind.flush || shape.micro_batches < 2 * shape.ranks) continue;
    SCOPED_TRACE(testing::Message() << "p=" << shape.ranks << " m=" << shape.micro_batches
                                    << " v=" << shape.chunks);
    const Report report = simulate(scenario_of(yaml_of(kind, shape, ", global_step: false")));
    const Schedule schedule = generate(kind, shape, costs);
    EXPECT_GE(report.iteration_time, Duration(period(schedule, costs)));
    EXPECT_LE(report.iteration_time, Duration(play(schedule, costs).makespan));
    EXPECT_EQ(report.bubble.makespan, Duration(play(schedule, costs).makespan));
    EXPECT_EQ(sum_of(report.breakdown), report.iteration_time);
  }
}

std::string name_of(const testing::TestParamInfo<ScheduleKind>& info) {
  std::string name(info.param.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, EverySchedule,
                         testing::ValuesIn(schedule_kinds().begin(), schedule_kinds().end()), name_of);

}  // namespace
}  // namespace stagecraft
