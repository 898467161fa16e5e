#include "sim/lower/host_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "models/shard.hpp"

namespace stagecraft {
namespace {

using std::chrono::microseconds;

HostModel host(std::int64_t launch_us, double slowdown = 1) {
  HostModel model{};
  model.launch.value = microseconds(launch_us);
  model.slowdown = {.value = slowdown};
  return model;
}

HostCosts costs(std::int64_t operator_us, std::int64_t kernel_us, CudaGraphs graphs = CudaGraphs::kNone) {
  return {.operator_overhead = microseconds(operator_us),
          .kernel_overhead = microseconds(kernel_us),
          .graphs = graphs};
}

Op product() {
  return {.kind = OpKind::kGemm, .name = "product", .gemm = {.m = 1, .n = 1, .k = 1}};
}

Op grouped(std::int64_t experts) {
  return {.kind = OpKind::kGroupedGemm,
          .name = "grouped",
          .gemm = {.m = 1, .n = 1, .k = 1, .batch = experts},
          .routed = true};
}

TEST(HostTime, IsTheBareLaunchesWhereTheFrameworkTakesNothing) {
  const Ops ops = {product(), {.name = "eager", .kernels = 3}, grouped(16)};
  EXPECT_EQ(host_time(ops, host(5), {}), microseconds(5 * 5));
}

// An operator each, the two kernels behind an eager one's first, and fifteen of sixteen experts.
TEST(HostTime, CountsOperatorsAndFurtherLaunches) {
  const Ops ops = {product(), {.name = "eager", .kernels = 3}, grouped(16)};
  EXPECT_EQ(host_time(ops, host(5), costs(100, 20)), microseconds(3 * 100 + (2 + 15) * 20));
  EXPECT_EQ(host_time(ops, host(5, 1.5), costs(100, 20)), microseconds(960));
  EXPECT_EQ(host_time(ops, host(500), costs(100, 20)), microseconds(5 * 500)) << "launches alone take longer";
}

TEST(HostTime, CountsAKernelOfAllExpertsOnce) {
  Ops ops = {grouped(16)};
  ops.front().joined = true;
  EXPECT_EQ(host_time(ops, host(5), costs(100, 20)), microseconds(100));
}

TEST(HostTime, CountsACollectiveAsOftenAsItRuns) {
  const Ops ops = {{.kind = OpKind::kCollective, .name = "message", .kernels = 3}};
  EXPECT_EQ(host_time(ops, host(5), costs(100, 20)), microseconds(300));
}

TEST(HostTime, OfGraphsIsWhatTheyDoNotHold) {
  const Ops ops = {product(), grouped(2)};
  EXPECT_EQ(host_time(ops, host(5), costs(100, 20, CudaGraphs::kLayers)), microseconds(120));
  EXPECT_EQ(host_time(ops, host(5), costs(100, 20, CudaGraphs::kIteration)), Duration::zero());
}

TransformerSpec small_model(bool experts) {
  TransformerSpec model;
  model.layers = 2;
  model.hidden = 512;
  model.heads = model.kv_heads = 8;
  model.head_size = 64;
  model.ffn_hidden = 2048;
  model.vocab = 50'304;
  if (experts) model.experts = {.count = 8, .top_k = 2, .ffn_hidden = 2048};
  return model;
}

std::int64_t routed(const Ops& ops) {
  return std::ranges::count_if(ops, [](const Op& op) { return op.routed; });
}

// Every exchange and everything between the two of a pass is of shapes that routing makes; nothing of a dense
// layer is, nor the router itself.
TEST(HostTime, RoutedOperatorsAreThoseOfTheRoutedExperts) {
  const Shard shard{.sequence = 1024, .expert = 4};
  const LayerOps dense = layer_operators(small_model(false), shard);
  for (const Ops* ops : {&dense.forward, &dense.input_gradient, &dense.weight_gradient})
    EXPECT_EQ(routed(*ops), 0);
  const LayerOps experts = layer_operators(small_model(true), shard, LayerKind::kExperts);
  for (const Ops* ops : {&experts.forward, &experts.input_gradient, &experts.weight_gradient})
    for (const Op& op : *ops) {
      const bool exchange = op.kind == OpKind::kCollective && op.group == CommGroup::kExpert;
      if (exchange || op.kind == OpKind::kGroupedGemm || op.name == "expert activation" ||
          op.name == "permute" || op.name == "unpermute") {
        EXPECT_TRUE(op.routed) << op.name;
      }
      if (op.name == "router" || op.name == "router choice" || op.kind == OpKind::kFlashForward) {
        EXPECT_FALSE(op.routed) << op.name;
      }
    }
  TransformerSpec padded = small_model(true);
  padded.experts->capacity_factor = 1;
  EXPECT_GT(routed(layer_operators(padded, shard, LayerKind::kExperts).forward), 5);
  padded.experts->pad_to_capacity = true;
  EXPECT_EQ(routed(layer_operators(padded, shard, LayerKind::kExperts).forward), 0);
  EXPECT_GT(routed(experts.forward), 5);
  EXPECT_EQ(routed(experts.weight_gradient), 2);
}

}  // namespace
}  // namespace stagecraft
