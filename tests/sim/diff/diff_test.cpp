#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/diff/trace_diff.hpp"
#include "tests/formats/kineto_traces.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kFolder = STAGECRAFT_SOURCE_DIR "/tests/data/kineto/";

Scenario scenario_of(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Diagnostics diagnostics;
  auto scenario = load_scenario(kFolder + name, overrides, repository_files(), diagnostics);
  EXPECT_TRUE(scenario.has_value()) << render_json(diagnostics.items());
  return scenario.value();
}

MeasuredTrace measured(std::optional<KinetoTrace> trace) {
  Diagnostics diagnostics;
  MeasuredTrace out{.name = "t.json", .trace = std::move(trace).value(), .steps = {}};
  out.steps = measured_steps(out.trace, {}, out.name, diagnostics).value();
  return out;
}

MeasuredTrace measured(const TraceText& text) {
  Diagnostics diagnostics;
  return measured(read_text(text.str(), diagnostics));
}

MeasuredTrace measured_file(const std::string& name) {
  Diagnostics diagnostics;
  std::ifstream in(kFolder + name);
  return measured(read_kineto(in, name, diagnostics));
}

TraceDiff diff_of(const Scenario& scenario, const MeasuredTrace& trace, int rank = 0) {
  const Simulation simulation = simulate_in_full(scenario);
  return make_trace_diff(predicted_rank(scenario, simulation, rank),
                         measured_rank(trace, simulation.prepared.plan, rank), trace,
                         {.scenario = "s", .trace = "t", .rank = rank});
}

// One rank of two stages of 1 ms forward and 2 ms backward, two micro-batches in 1F1B order: 9 ms, 6 of them
// work.
TEST(TraceDiff, APipelineOfGivenCostsIsPredictedToTheNanosecond) {
  TraceText text;
  text.kernel("aten::mul", "", "k", 0, 2200).kernel("aten::mul", "", "k", 5000, 4400);
  const TraceDiff diff = diff_of(scenario_of("made_pipeline.yaml"), measured(text));
  EXPECT_EQ(diff.predicted.window, milliseconds(9));
  EXPECT_EQ(diff.predicted.compute, milliseconds(6));
  EXPECT_EQ(diff.predicted.idle, milliseconds(3));
  EXPECT_EQ(diff.measured.window, microseconds(9400));
  EXPECT_EQ(diff.measured.compute, microseconds(6600));
  EXPECT_EQ(diff.measured.idle, microseconds(2800));
}

// The same two stages in an order that never drains: either works all 6 ms of an iteration, of which the last
// rank's begins within a backward.
TEST(TraceDiff, APassThatReachesIntoTheIterationCountsFromItsBeginOn) {
  TraceText text;
  text.kernel("aten::mul", "", "k", 0, 2200);
  const Scenario scenario = scenario_of("made_pipeline.yaml", {"schedule=pipedream-2bw"});
  for (const int rank : {0, 1}) {
    const TraceDiff diff = diff_of(scenario, measured(text), rank);
    EXPECT_EQ(diff.predicted.window, milliseconds(6));
    EXPECT_EQ(diff.predicted.compute, milliseconds(6)) << rank;
    EXPECT_EQ(diff.predicted.idle, milliseconds(0)) << rank;
  }
}

// System: two steps of 100 us; in the second a product of two kernels, an all-reduce of the tensor group that
// begins while it runs, and a norm. A third step begins at 220 us.
TEST(TraceDiff, AStepReachesFromItsFirstKernelToThatOfTheNext) {
  TraceText text;
  text.step(1, 0, 100).kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 1, 9);
  text.step(2, 100, 100).kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 120, 10);
  text.again("splitKreduce_kernel", 130, 2);
  text.collective("AllReduce", collective_arguments("allreduce", 8, 8), 125, 15);
  text.kernel("RMSNorm", "", "void rms_norm<4>(int)", 145, 5);
  const Scenario scenario = scenario_of("made_2x1.yaml", {"parallelism.data=1", "parallelism.tensor=2"});
  MeasuredTrace trace = measured(TraceText(text).step(3, 200, 50).kernel("aten::mul", "", "k", 220, 30));
  trace.steps = {1};
  const Simulation simulation = simulate_in_full(scenario);
  const RankOps ops = measured_rank(trace, simulation.prepared.plan, 0);
  EXPECT_EQ(ops.occupation.window, microseconds(100));
  EXPECT_EQ(ops.occupation.compute, microseconds(12 + 5));
  EXPECT_EQ(ops.occupation.exposed[static_cast<std::size_t>(Activity::kTensor)], microseconds(8));
  EXPECT_EQ(ops.occupation.idle, microseconds(75));
  EXPECT_EQ(ops.kernels, 4);
  const OpTotal& product = ops.products.at({.m = 8, .n = 4, .k = 2, .batch = 1}).total;
  EXPECT_EQ(product.count, 1);
  EXPECT_NEAR(product.seconds, 12e-6, 1e-15);
  EXPECT_EQ(ops.traffic.at({Activity::kTensor, "all-reduce"}).count, 1);
  const OtherKey norm{.kind = WorkKind::kMemory, .role = OperatorRole::kNorm, .name = "RMSNorm"};
  EXPECT_EQ(ops.others.at(norm).count, 1);
}

TEST(TraceDiff, GroupsAreToldByRanksThenByDescription) {
  const Scenario scenario = scenario_of("made_2x1.yaml", {"cluster.gpus=4", "parallelism.tensor=2"});
  const Simulation simulation = simulate_in_full(scenario);
  const auto group = [&](const std::string& ranks, const std::string& description) {
    TraceText text;
    text.collective("AllReduce",
                    collective_arguments("allreduce", 8, 8, ranks) +
                        fmt::format(R"(, "Process Group Description": "{}")", description),
                    1, 1);
    return measured_rank(measured(text), simulation.prepared.plan, 0).traffic.begin()->first.group;
  };
  EXPECT_EQ(group("[0, 1]", ""), Activity::kTensor);
  EXPECT_EQ(group("[0, 2]", "mesh_tp"), Activity::kData);  // ranks say more
  EXPECT_EQ(group("[0, 3]", ""), Activity::kOtherGroup);
  EXPECT_EQ(group("", "TENSOR_MODEL_PARALLEL_GROUP"), Activity::kTensor);
  EXPECT_EQ(group("", "mesh_dp_shard"), Activity::kData);
  EXPECT_EQ(group("", ""), Activity::kOtherGroup);  // two groups have two ranks
}

// Gradients are scattered over the GPUs of a node, and each shard is then summed with its copy on another.
TEST(TraceDiff, SumsOverTheReplicasOfAShardAreTrafficToo) {
  const Scenario scenario =
      scenario_of("made_2x1.yaml",
                  {"cluster={node: dgx-a100-80gb, nodes: 2}",
                   "parallelism={data: 16, zero_stage: 2, zero_group: 8}", "training.global_batch_size=16"});
  const RankOps ops = predicted_rank(scenario, simulate_in_full(scenario), 0).ops;
  EXPECT_EQ(ops.traffic.count({Activity::kData, "reduce-scatter"}), 1u);
  EXPECT_EQ(ops.traffic.count({Activity::kData, "all-reduce"}), 1u);
}

TEST(TraceDiff, OperatorsOfARankAddUpToTheComputeOfItsTimeline) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{},
        {"training.recompute=full"},
        {"training.attention=unfused"},
        {"cluster.gpus=1", "parallelism.data=1", "model.mtp_layers=1", "training.recompute.granularity=full",
         "training.recompute.method=block", "training.recompute.layers=1"}}) {
    Scenario scenario = scenario_of("made_2x1.yaml", overrides);
    scenario.profile->gpu_variability
        .reset();  // the timeline waits for the slowest GPU, operators are those of one
    const PredictedRank rank = predicted_rank(scenario, simulate_in_full(scenario), 0);
    double sum = 0;
    for (const auto& [kind, total] : rank.ops.kinds) sum += total.seconds;
    EXPECT_NEAR(sum, to_seconds(rank.ops.occupation.compute), 1e-6);
    EXPECT_NEAR(to_seconds(rank.beyond), 0, 1e-6);
  }
}

// A trace has no kernel between kernels: the gaps that a profile charges are idle time on both sides.
TEST(TraceDiff, GapsBetweenKernelsAreIdleTimeOfAPrediction) {
  Scenario scenario = scenario_of("made_2x1.yaml");
  scenario.profile->gpu_variability.reset();
  scenario.profile->host.launch.value = Duration::zero();
  scenario.options.rules.operator_overhead =
      scenario.options.rules.kernel_overhead = {};  // nothing waits for the host
  const auto with_gap = [&](Duration gap) {
    scenario.profile->host.kernel_gap.value = gap;
    return predicted_rank(scenario, simulate_in_full(scenario), 0).ops;
  };
  const RankOps none = with_gap(Duration::zero()), some = with_gap(microseconds(10));
  // The step keeps its few.
  const auto step = [](const RankOps& ops) { return ops.kinds.at(WorkKind::kOptimizer).seconds; };
  double kernels = 0;
  for (const auto& [kind, total] : none.kinds) {
    if (kind == WorkKind::kOptimizer) continue;
    EXPECT_NEAR(some.kinds.at(kind).seconds, total.seconds, 1e-9);
    kernels += total.count;
  }
  EXPECT_GT(kernels, 100);
  EXPECT_NEAR(to_seconds(some.occupation.compute) - step(some),
              to_seconds(none.occupation.compute) - step(none), 1e-6);
  EXPECT_NEAR(to_seconds(some.occupation.idle - none.occupation.idle), kernels * 10e-6, 1e-6);
}

// Three passes of four linear layers and of the head, for each of two micro-batches.
TEST(TraceDiff, EveryProductOfALayerFindsItsOwn) {
  const TraceDiff diff = diff_of(scenario_of("made_2x1.yaml"), measured_file("made_2x1.rank0.json"));
  double predicted = 0, found = 0;
  for (const ProductRow& product : diff.products) {
    SCOPED_TRACE(product.row.name);
    ASSERT_TRUE(product.row.predicted && product.row.measured);
    EXPECT_EQ(product.row.predicted->count, product.row.measured->count);
    predicted += product.row.predicted->count;
    found += product.row.measured->count;
  }
  EXPECT_EQ(predicted, 30);
  EXPECT_EQ(found, 30);
  ASSERT_THAT(diff.traffic, SizeIs(1));
  EXPECT_EQ(diff.traffic[0].row.name, "data all-reduce");
  EXPECT_THAT(diff.shapeless, IsEmpty());
}

// The trace has no shapes of its norms, whose names tell; its gate is two operators, and the model's is one.
TEST(TraceDiff, EveryOperatorOfALayerFindsItsOwn) {
  const TraceDiff diff = diff_of(scenario_of("made_2x1.yaml"), measured_file("made_2x1.rank0.json"));
  const auto row = [&](const std::string& name) -> const TiedOperators& {
    for (const OperatorRow& candidate : diff.operators)
      if (candidate.row.name == name) return candidate.operators;
    ADD_FAILURE() << "no row " << name;
    return diff.operators.front().operators;
  };
  EXPECT_EQ(row("flash attention").tie, Tie::kShape);
  EXPECT_EQ(row("flash attention").elements, 8 * 1024 * 1024);
  EXPECT_EQ(row("flash attention backward").theirs, std::set<std::string>{"aten::_flash_attention_backward"});
  EXPECT_EQ(row("activation").tie, Tie::kShape);
  EXPECT_EQ(row("activation").theirs, (std::set<std::string>{"aten::mul", "aten::silu"}));
  EXPECT_EQ(row("embedding").tie, Tie::kShape);
  EXPECT_EQ(row("loss").theirs, std::set<std::string>{"aten::_log_softmax"});
  EXPECT_EQ(row("attention norm, ffn norm, final norm").tie, Tie::kName);
  EXPECT_EQ(row("optimizer step").theirs, std::set<std::string>{"aten::_fused_adamw_"});
  for (const OtherRow& other : diff.others) EXPECT_FALSE(other.row.measured) << other.row.name;
  const TiedShares shares = tied_shares(diff);
  EXPECT_NEAR(shares.by_family(), 0, 1e-12);
  EXPECT_GT(shares.by_shape, 0);
  EXPECT_GT(shares.by_name, 0);
}

// A receive runs while it waits; the simulation idles. What both sides lose is alike.
TEST(TraceDiff, WaitingForAMessageIsComparedWithWaiting) {
  TraceText text;
  text.kernel("aten::mul", "", "k", 0, 3000);
  text.collective("SendRecv", collective_arguments("recv", 8, 8), 3000, 2000);
  text.kernel("aten::mul", "", "k", 5000, 4000);
  const TraceDiff diff = diff_of(scenario_of("made_pipeline.yaml"), measured(text));
  EXPECT_EQ(diff.measured.idle, Duration{});
  EXPECT_EQ(diff.measured.pipeline_or_idle(), milliseconds(2));
  EXPECT_EQ(diff.predicted.pipeline_or_idle(), milliseconds(3));
  EXPECT_THAT(render_text(diff), HasSubstr("pipeline and idle"));
}

TEST(TraceDiff, WhatOneSideAloneHasIsNamed) {
  TraceText text;
  text.kernel("aten::mm", product_arguments(7, 5, 3), "gemm_tn", 1, 9);
  text.kernel("_Linear", "", "void nvjet_hsh_256x128<4>(int)", 20, 9);
  text.collective("AllGather", collective_arguments("_allgather_base", 8, 16), 30, 5);
  const std::string said = render_text(diff_of(scenario_of("made_2x1.yaml"), measured(text)));
  const std::size_t trace = said.find("only in the trace"), prediction = said.find("only in the prediction");
  ASSERT_NE(trace, std::string::npos);
  ASSERT_NE(prediction, std::string::npos);
  const std::string in_trace = said.substr(trace, prediction - trace);
  EXPECT_THAT(in_trace, HasSubstr("aten::mm 7 x 5 x 3"));
  EXPECT_THAT(in_trace, HasSubstr("nvjet_hsh_256x128, shape not recorded"));
  EXPECT_THAT(in_trace, HasSubstr("data all-gather"));
  EXPECT_THAT(in_trace, Not(HasSubstr("qkv")));
  EXPECT_THAT(said.substr(prediction), HasSubstr("qkv 3072 x 1024 x 1024"));
  EXPECT_THAT(said.substr(prediction), HasSubstr("data all-reduce"));
}

TEST(TraceDiff, JsonPartsAddUpToTheIteration) {
  const auto json = nlohmann::json::parse(
      render_json(diff_of(scenario_of("made_2x1.yaml"), measured_file("made_2x1.rank0.json"))));
  EXPECT_EQ(json["schema"], "stagecraft.diff/1");
  EXPECT_EQ(json["steps"], (std::vector<int>{2, 3}));
  for (const char* side : {"predicted", "measured"}) {
    const auto& of = json[side];
    EXPECT_NEAR(of["iteration_time_s"].get<double>(),
                of["compute_s"].get<double>() + of["exposed_communication_s"].get<double>() +
                    of["idle_s"].get<double>(),
                1e-12);
  }
  double families = 0;
  for (const auto& family : json["families"]) families += family["measured"]["time_s"].get<double>();
  EXPECT_NEAR(families, json["measured"]["compute_s"].get<double>(), 1e-9);  // one stream: nothing overlaps
}

// A loss of 16 kernels that is one of 4 in the trace: predicted to take twice the time, each of them half as long.
TEST(TraceDiff, ARatioIsOfTheTimesThatDiffer) {
  DiffRow row{.name = "loss", .predicted = OpTotal{}, .measured = OpTotal{}};
  EXPECT_FALSE(row.ratio().has_value());
  row.measured->add(4, 1);
  EXPECT_EQ(row.ratio(), 0.0);
  EXPECT_FALSE(row.ratio_of_one().has_value());
  row.predicted->add(16, 2);
  EXPECT_EQ(row.difference(), 1.0);  // predicted too slow
  EXPECT_EQ(row.ratio(), 2.0);
  EXPECT_EQ(row.ratio_of_one(), 0.5);
  row.measured.reset();
  EXPECT_FALSE(row.ratio().has_value());
}

TEST(TraceDiff, InJsonARatioIsOfTheTimesOfItsRowAndOfAProductsOne) {
  const auto json = nlohmann::json::parse(
      render_json(diff_of(scenario_of("made_2x1.yaml"), measured_file("made_2x1.rank0.json"))));
  int other_counts = 0;
  for (const char* rows : {"families", "communication", "operators", "products"})
    for (const auto& row : json[rows]) {
      SCOPED_TRACE(row["name"]);
      const auto& ours = row["predicted"];
      const auto& theirs = row["measured"];
      ASSERT_TRUE(ours.is_object() && theirs.is_object());
      EXPECT_EQ(row["ratio"] < 1, row["difference_s"] < 0);
      EXPECT_NEAR(row["ratio"].get<double>(), ours["time_s"].get<double>() / theirs["time_s"].get<double>(),
                  1e-9);
      other_counts += ours["count"] != theirs["count"] ? 1 : 0;
    }
  EXPECT_GT(other_counts, 0);
}

TEST(TraceDiff, RowsStandInTheOrderOfTheirDifference) {
  const TraceDiff diff = diff_of(scenario_of("made_2x1.yaml"), measured_file("made_2x1.rank0.json"));
  for (std::size_t i = 1; i < diff.products.size(); ++i)
    EXPECT_GE(std::abs(diff.products[i - 1].row.difference()), std::abs(diff.products[i].row.difference()));
}

}  // namespace
}  // namespace stagecraft
