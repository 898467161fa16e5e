// One pass over a graph in order ends when the event loop ends.
#include "sim/engine/graph_sweep.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sim/engine/engine.hpp"
#include "tests/sim/engine/random_program.hpp"
#include "tests/sim/engine/system.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeeds = 500;

// Ranks with a stream of passes that yields and a stream of loads, each of which waits for a pass before it;
// messages between ranks; at the end tasks without a load that wait for all. Every task has a label and a
// time of its own.
class Ranks {
 public:
  // Graph and times are independent: programs of one graph differ in `times`.
  Ranks(std::uint64_t graph, std::uint64_t times) : graph_(graph), times_(times) {}

  Program build() && {
    share_ = static_cast<double>(1 + graph_() % 8) / 8;
    longest_ = std::uint64_t{1} << (graph_() % 12);
    const std::uint64_t ranks = 1 + graph_() % 4;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) add_rank(static_cast<std::int32_t>(rank));
    const ResourceId joint =
        builder_.add_resource({.kind = ResourceKind::kConcurrent, .rank = 0, .name = "joint"});
    const Handle barrier = builder_.add_task(joint, Duration::zero(), label());
    for (const Handle last : lasts_) builder_.add_dependency(last, barrier);
    for (const ResourceId stream : streams_) builder_.add_dependency(barrier, task(stream));
    return std::move(builder_).build();
  }

 private:
  using Handle = ProgramBuilder::Handle;

  LabelId label() { return builder_.add_label({.name = "task", .parts = {}}); }
  Handle task(ResourceId resource) {
    return builder_.add_task(resource, Duration(static_cast<std::int64_t>(times_() % longest_)), label());
  }

  void add_rank(std::int32_t rank) {
    const ResourceId compute = builder_.add_resource(
        {.kind = ResourceKind::kStream, .rank = rank, .name = "compute", .yields = true});
    const ResourceId data =
        builder_.add_resource({.kind = ResourceKind::kStream, .rank = rank, .name = "data"});
    const ResourceId send =
        builder_.add_resource({.kind = ResourceKind::kConcurrent, .rank = rank, .name = "send"});
    std::vector<Handle> passes;
    for (std::uint64_t i = 1 + graph_() % 20; i-- > 0;) {
      passes.push_back(task(compute));
      if (!sent_.empty() && graph_() % 2 == 0)
        builder_.add_dependency(sent_[graph_() % sent_.size()], passes.back());
      const std::uint64_t beside = graph_() % 4;
      if (beside > 1) continue;
      const Handle load = task(data);
      if (graph_() % 4 > 0) builder_.add_dependency(passes[graph_() % passes.size()], load);
      if (beside == 0) builder_.add_load(load, graph_() % 4 == 0 ? share_ / 2 : share_);
    }
    for (const Handle pass : passes)
      if (graph_() % 2 == 0) builder_.add_dependency(pass, new_.emplace_back(task(send)));
    sent_.insert(sent_.end(), new_.begin(), new_.end());
    new_.clear();
    lasts_.push_back(passes.back());
    streams_.insert(streams_.end(), {compute, data});
  }

  std::mt19937_64 graph_, times_;
  double share_ = 0;
  std::uint64_t longest_ = 1;
  ProgramBuilder builder_;
  std::vector<Handle> lasts_, sent_, new_;
  std::vector<ResourceId> streams_;
};

// Oracle: the event loop, for the graph with its own times and with others.
TEST(GraphSweep, AgreesWithTheEventLoopWhereLoadsSlowPasses) {
  std::size_t loaded = 0, slowed = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    auto sweep = GraphSweep::of(Ranks(seed, 0).build());
    ASSERT_TRUE(sweep.has_value());
    for (std::uint64_t times = 0; times < 4; ++times) {
      const Program program = Ranks(seed, times).build();
      const Duration makespan = run(program).makespan;
      ASSERT_EQ(sweep->makespan(GraphSweep::times_of(program)), makespan) << "times=" << times;
      loaded += program.loads.empty() ? 0 : 1;
      Program alone = program;
      alone.loads.clear();
      slowed += run(alone).makespan < makespan ? 1 : 0;
    }
  }
  EXPECT_GT(slowed, loaded / 4) << "loads that slow nobody prove nothing";
}

TEST(GraphSweep, AgreesWithTheLongestPathWhereNothingIsShared) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Program program = random_program(seed);
    for (std::uint32_t i = 0; i < program.task_count(); ++i) {  // a time of its own for every task
      program.label[TaskId(i)] = LabelId(i + 1);
      program.labels.push_back({.name = "task", .parts = {}});
    }
    auto sweep = GraphSweep::of(program);
    ASSERT_TRUE(sweep.has_value());
    ASSERT_EQ(sweep->makespan(GraphSweep::times_of(program)), longest_path(program).makespan);
  }
}

// a (10 s) yields; b takes half of the device from 0 to 4 s and c, right behind it, a share to 8 s.
Program beside_two_loads(double share) {
  System system;
  system.task(system.yielding("compute"), 10s, "a");
  const ResourceId data = system.stream("data");
  system.load(system.task(data, 4s, "b"), 0.5);
  system.load(system.task(data, 4s, "c"), share);
  return system.build();
}

// c takes half, too.
// Expectation: 4 s of work by 8 s, and 6 more: 14 s. With a of 3 s: 6 s.
TEST(GraphSweep, GoesOnFromOneLoadToTheNext) {
  auto sweep = GraphSweep::of(beside_two_loads(0.5));
  ASSERT_TRUE(sweep.has_value());
  EXPECT_EQ(sweep->makespan(std::vector<Duration>{10s, 4s, 4s}), 14s);
  EXPECT_EQ(sweep->makespan(std::vector<Duration>{3s, 4s, 4s}), 8s);
  EXPECT_EQ(sweep->makespan(std::vector<Duration>{3s, 1s, 1s}), 4s);
}

// c takes three quarters. Expectation: 2 s of work by 4 s, 1 by 8 s, and 7 more: 15 s.
TEST(GraphSweep, GoesOnToALoadOfAnotherShare) {
  const Program program = beside_two_loads(0.75);
  auto sweep = GraphSweep::of(program);
  ASSERT_TRUE(sweep.has_value());
  EXPECT_EQ(run(program).makespan, 15s);
  EXPECT_EQ(sweep->makespan(GraphSweep::times_of(program)), 15s);
}

// Each is a program that one pass in order cannot know.
TEST(GraphSweep, LeavesToTheEventLoopWhatTakesEvents) {
  const auto taken = [](auto change) {
    System system;
    const ResourceId compute = system.yielding("compute"), data = system.stream("data");
    const TaskId a = system.task(compute, 2s, "a"), b = system.task(data, 1s, "b");
    system.load(b, 0.5);
    change(system, a);
    return GraphSweep::of(system.build()).has_value();
  };
  EXPECT_TRUE(taken([](System&, TaskId) {}));
  EXPECT_FALSE(taken([](System& system, TaskId a) {  // a flow
    system.flow(a, 1s, Bandwidth(1e9),
                system.route({{.link = system.link("link", Bandwidth(1e9)), .flows = 1}}));
  })) << "a flow";
  EXPECT_FALSE(taken([](System& system, TaskId) {
    system.load(system.task(system.stream("more"), 1s, "c"), 0.5);
  })) << "two streams of loads";
  EXPECT_FALSE(taken([](System& system, TaskId) { system.task(system.yielding("more"), 1s, "c"); }))
      << "two streams that yield";
  EXPECT_FALSE(taken([](System& system, TaskId) { system.speed(1s, ResourceId(0), 0.5); }))
      << "a change of speed";
}

}  // namespace
}  // namespace stagecraft
