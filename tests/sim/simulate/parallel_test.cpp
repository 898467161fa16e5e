// What sharding, context and experts cost, on whole scenarios.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/price_iteration.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

// A small Llama on 16 GPUs. Parts of `parallelism` and `training` are appended as they are.
Scenario llama(const std::string& parallelism, const std::string& rest = "") {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 8, ffn_hidden: 5632, vocab: "
      "32000,"
      " max_sequence_length: 4096}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 2}\n"
      "parallelism: {" +
      parallelism +
      "}\n"
      "training: {global_batch_size: 16, sequence_length: 4096, gradient_dtype: bf16}\n" +
      rest);
}

// Four layers of 32 experts, two for each token, on 32 GPUs.
Scenario mixtral(int expert) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: llama, layers: 4, hidden: 2048, heads: 16, kv_heads: 8, ffn_hidden: 5632, vocab: "
      "32000,"
      " max_sequence_length: 4096}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
      "parallelism: {data: 32}\n"
      "training: {global_batch_size: 64, sequence_length: 4096}\n");
  std::get<TransformerSpec>(scenario.model).experts =
      ExpertsSpec{.count = 32, .top_k = 2, .ffn_hidden = 2048};
  scenario.parallelism.expert = expert;
  return scenario;
}

// Prices alone: blocks of a model may have them before its memory is known.
IterationPrices prices_of(const Scenario& scenario) {
  Diagnostics diagnostics;
  const std::optional<ParallelPlan> plan = resolve({.model = scenario.model,
                                                    .cluster = &*scenario.cluster,
                                                    .parallelism = scenario.parallelism,
                                                    .training = scenario.training,
                                                    .origins = scenario.origins,
                                                    .fallback = {.file = scenario.source}},
                                                   diagnostics);
  diagnostics.throw_if_errors();
  return price_transformer(std::get<TransformerSpec>(scenario.model), *scenario.profile,
                           Cluster(*scenario.cluster), pricing_request(scenario, *plan));
}

Duration time_of(const Scenario& scenario) {
  return simulate(scenario).iteration_time;
}

// Seconds of data traffic of an iteration, hidden or not, all ranks together.
Duration data_traffic(const Scenario& scenario) {
  const Simulation simulation = simulate_in_full(scenario);
  Duration sum{};
  for (std::uint32_t t = 0; t < simulation.program.task_count(); ++t) {
    const Label& label = simulation.program.labels[simulation.program.label[TaskId(t)]];
    if (label.name != "gradient reduction" && label.name != "parameter gather") continue;
    sum += simulation.program.duration[TaskId(t)];
  }
  return sum;
}

// One GPU a node on a network without latency: seconds are bytes.
Scenario latency_free(int zero_stage) {
  Scenario scenario = llama("data: 16, zero_stage: " + std::to_string(zero_stage));
  NodeSpec& node = scenario.cluster->groups.front().node;
  node.gpus = 1;
  node.nics = 1;
  scenario.cluster->groups.front().count = 16;
  scenario.cluster->fabric = {};
  return scenario;
}

// Rajbhandari et al. (arXiv 1910.02054), section 7: stages 1 and 2 move what plain data parallelism moves,
// stage 3 half as much again; one micro-batch, weights and gradients of 2 bytes.
TEST(Headline, TellsPlansApart) {
  const auto headline = [](const std::string& training) {
    return simulate(scenario_of("stagecraft: 1\nmodel: gpt-1.7b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
                                "parallelism: {tensor: 4, sequence_parallel: true}\n"
                                "training: {global_batch_size: 16, " +
                                training + "}\n"))
        .headline;
  };
  EXPECT_EQ(headline("micro_batch_size: 1"), "tp 4 · sp · pp 1 · dp 2 · 1f1b");
  EXPECT_EQ(headline("micro_batch_size: 4"), "tp 4 · sp · pp 1 · dp 2 · mb 4 · 1f1b");
  EXPECT_EQ(headline("attention: unfused, recompute: selective"),
            "tp 4 · sp · pp 1 · dp 2 · 1f1b · recompute selective");
  EXPECT_EQ(headline("recompute: {granularity: selective, modules: [layernorm, mlp]}"),
            "tp 4 · sp · pp 1 · dp 2 · 1f1b · recompute layernorm+mlp");
  EXPECT_EQ(headline("recompute: {granularity: full, method: block, layers: 3}"),
            "tp 4 · sp · pp 1 · dp 2 · 1f1b · recompute full block 3");
}

TEST(ZeroTraffic, IsThatOfThePaper) {
  const double plain = to_seconds(data_traffic(latency_free(0)));
  EXPECT_NEAR(to_seconds(data_traffic(latency_free(1))) / plain, 1, 1e-6);
  EXPECT_NEAR(to_seconds(data_traffic(latency_free(2))) / plain, 1, 1e-6);
  Scenario freed = latency_free(3);
  freed.options.rules.memory = {};
  EXPECT_NEAR(to_seconds(data_traffic(freed)) / plain, 1.5, 1e-6);
  Scenario kept = latency_free(3);
  kept.options.reshard_after_forward = false;
  EXPECT_NEAR(to_seconds(data_traffic(kept)) / plain, 1, 1e-6);
}

// PyTorch's FSDP does not free its root (embedding, last norm, head) between forward and backward.
TEST(ZeroTraffic, OfFsdpHasOneGatherOfTheRoot) {
  Scenario freed = latency_free(3);
  const Scenario fsdp = freed;
  freed.options.rules.memory = {};
  const std::vector<UnitPrice> units = prices_of(fsdp).stages.front().units;
  const Duration root = units.front().gather.total() + units.back().gather.total();
  EXPECT_GT(root, Duration::zero());
  EXPECT_EQ(data_traffic(freed), data_traffic(fsdp) + root);
}

// Where the root is one unit, a tied word table is gathered with the embedding alone: what is left is the last norm.
TEST(ZeroTraffic, OfARootHasATiedWordTableOnce) {
  Scenario scenario = latency_free(3);
  std::get<TransformerSpec>(scenario.model).tied_embeddings = true;
  const std::vector<UnitPrice> units = prices_of(scenario).stages.front().units;
  EXPECT_LT(100 * units.back().gather.total(), units.front().gather.total());
  scenario.options.rules.memory = {};
  EXPECT_EQ(prices_of(scenario).stages.front().units.front().gather.total(), units.front().gather.total());
  EXPECT_GT(prices_of(scenario).stages.front().units.back().gather.total(), units.front().gather.total());
}

// ZeRO-Infinity (arXiv 2104.07857), section 4.1: weights of layers that are made again are loaded once more,
// where the software frees them in between; those of embedding and head are not.
TEST(ZeroTraffic, HasAThirdGatherOfTheLayersThatAreMadeAgain) {
  Scenario scenario = latency_free(3);
  const Duration two = data_traffic(scenario);
  scenario.options.rules.recompute_gathers_again = true;
  EXPECT_EQ(data_traffic(scenario), two);  // nothing is made again
  scenario.training.recompute.granularity = Recompute::kFull;
  const std::vector<UnitPrice> units = prices_of(scenario).stages.front().units;
  ASSERT_EQ(units.size(), 10u);
  Duration layers{};
  for (std::size_t i = 0; i < units.size(); ++i) {
    EXPECT_EQ(units[i].backward_gathers == 2, i >= 1 && i <= 8) << i;
    if (units[i].backward_gathers == 2) layers += units[i].gather.total();
  }
  EXPECT_GT(layers, Duration::zero());
  EXPECT_EQ(data_traffic(scenario), two + layers);
}

// Matrix by matrix the bytes are the same; each collective copies a tensor for each of 16 ranks, every copy a
// launch and what its host does beside. A layer has four matrices, the gate is one with the up projection; an end has one.
TEST(ZeroTraffic, OfMatricesHasACopyForEachRank) {
  constexpr Duration launch = std::chrono::microseconds(5);
  Scenario scenario = latency_free(3);
  const auto units = [&] { return prices_of(scenario).stages.front().units; };
  const UnitPrice whole = units()[1];
  scenario.options.rules.gathers_matrices = true;
  scenario.profile->host.launch.value = Duration::zero();
  const std::vector<UnitPrice> free = units();
  EXPECT_NEAR(to_seconds(free[1].gather.total()) / to_seconds(whole.gather.total()), 1, 1e-6);
  EXPECT_NEAR(to_seconds(free[1].reduce.total()) / to_seconds(whole.reduce.total()), 1, 1e-6);
  scenario.profile->host.launch.value = launch;
  const std::vector<UnitPrice> copied = units();
  EXPECT_EQ(copied[1].gather.total() - free[1].gather.total(), launch * 16 * 4);
  EXPECT_EQ(copied[1].reduce.total() - free[1].reduce.total(), launch * 16 * 4);
  EXPECT_EQ(copied[0].gather.total() - free[0].gather.total(), launch * 16);
  scenario.options.rules.piece_overhead = std::chrono::microseconds(7);  // and what the host takes to make it
  EXPECT_EQ(units()[1].gather.total() - free[1].gather.total(), std::chrono::microseconds(12) * 16 * 4);
}

// Sharded over one rank each, the copies still sum their gradients: what plain replicas sum, unit by unit.
TEST(ZeroTraffic, OfShardsOfOneRankIsThatOfPlainReplicas) {
  const Duration replicas = data_traffic(latency_free(0));
  ASSERT_GT(replicas, Duration::zero());
  for (const int stage : {1, 2, 3}) {
    Scenario scenario = latency_free(stage);
    scenario.parallelism.zero_group = 1;
    EXPECT_NEAR(to_seconds(data_traffic(scenario)) / to_seconds(replicas), 1, 1e-6) << stage;
  }
}

// With more micro-batches stages 0 and 1 move no more, stage 2 its reductions and stage 3 everything again.
TEST(ZeroTraffic, GrowsWithMicroBatchesWherePassesCarryIt) {
  const auto growth = [](int zero_stage) {
    Scenario scenario = latency_free(zero_stage);
    const double one = to_seconds(data_traffic(scenario));
    scenario.training.global_batch_size = 64;
    return to_seconds(data_traffic(scenario)) / one;
  };
  EXPECT_NEAR(growth(0), 1, 1e-6);
  EXPECT_NEAR(growth(1), 1, 1e-6);
  EXPECT_NEAR(growth(2), 2.5, 1e-6);  // (4 + 1) / 2
  EXPECT_NEAR(growth(3), 4, 1e-6);
}

// Nothing is shared by one rank: every stage of ZeRO is plain training there, bit for bit.
TEST(ZeroAlone, ChangesNothing) {
  const Report plain = simulate(llama("tensor: 8, pipeline: 2, data: 1"));
  for (const char* zero : {"1", "2", "3"}) {
    const Report report =
        simulate(llama(std::string("tensor: 8, pipeline: 2, data: 1, zero_stage: ") + zero));
    EXPECT_EQ(report.timeline_hash, plain.timeline_hash) << zero;
    EXPECT_EQ(report.breakdown, plain.breakdown) << zero;
  }
}

// One number: summed over the ranks that have a shard each, whole nodes or a part of them.
TEST(GradientNorm, IsSummedOverTheRanksThatShareTheStates) {
  const auto norm = [](const std::string& parallelism) {
    return prices_of(llama(parallelism)).ranks.front().gradient_norm.total();
  };
  EXPECT_EQ(norm("data: 16, zero_stage: 0"), Duration::zero());
  const Duration all = norm("data: 16, zero_stage: 1");
  EXPECT_GT(all, Duration::zero());
  EXPECT_EQ(norm("data: 16, zero_stage: 2"), all);
  EXPECT_EQ(norm("data: 16, zero_stage: 3"), all);
  EXPECT_EQ(norm("data: 8, context: 2, zero_stage: 1"), all);
  EXPECT_LT(norm("data: 16, zero_stage: 3, zero_group: 8"), all);  // in a node
  EXPECT_EQ(norm("data: 16, zero_stage: 3, zero_group: 1"), Duration::zero());
  EXPECT_GT(norm("tensor: 2, data: 8, zero_stage: 1"), norm("tensor: 2, data: 8"));
}

TEST(Zero, StageThreeExposesItsFirstGather) {
  for (const bool overlapped : {true, false}) {
    Scenario scenario = llama("data: 16, zero_stage: 3");
    scenario.overlap.parameters = overlapped;
    const Simulation simulation = simulate_in_full(scenario);
    const StagePrice& stage = simulation.prices.stages.front();
    ASSERT_EQ(stage.units.size(), 10u);  // embedding, eight layers, head
    EXPECT_EQ(simulation.timeline.start[TaskId(0)], stage.units.front().gather.total());
    EXPECT_GE(part_of(simulation.report, Category::kDataComm), stage.units.front().gather.total());
  }
}

// Blocks of 8 in a node: the sum over their replicas has a stream of its own. Blocks of 16 over two nodes:
// both kinds of sums need the NICs, and one follows the other. So do both over the NVLinks of one node.
TEST(Zero, ReplicasOfBlocksInANodeAreSummedBesideTheirReductions) {
  const auto unit = [](int nodes, int block) {
    Scenario scenario = llama("zero_stage: 3");
    scenario.cluster->groups.front().count = nodes;
    scenario.training.global_batch_size = nodes * 8;
    scenario.parallelism.zero_group = block;
    return prices_of(scenario).stages.front().units.front();
  };
  const UnitPrice in_node = unit(4, 8), over_nodes = unit(4, 16), alone = unit(2, 16);
  EXPECT_GT(in_node.replicate.total(), Duration::zero());
  EXPECT_EQ(in_node.reduce.total(), unit(1, 8).reduce.total());
  EXPECT_EQ(over_nodes.replicate.total(), Duration::zero());
  EXPECT_GT(over_nodes.reduce.total(), alone.reduce.total());
  const UnitPrice halves = unit(1, 4);
  EXPECT_EQ(halves.replicate.total(), Duration::zero());
  EXPECT_GT(halves.reduce.total(), unit(1, 8).reduce.total());
}

// Each gather saved, hidden or put off makes the iteration shorter.
TEST(Zero, StageThreeIsSlowerTheLessItHides) {
  Scenario scenario = llama("data: 16, zero_stage: 3");
  const Duration both = time_of(scenario);
  scenario.options.reshard_after_forward = false;
  EXPECT_LE(time_of(scenario), both);
  scenario.options.reshard_after_forward = true;
  scenario.overlap.parameters = false;
  const Duration blocking = time_of(scenario);
  EXPECT_GT(blocking, both);
  scenario.overlap.gradients = false;
  EXPECT_GT(time_of(scenario), blocking);
}

// Shards within a node keep gathers off the network: hybrid sharding beats sharding over both nodes.
TEST(Zero, HybridShardingGathersInsideTheNode) {
  const auto gather = [](const char* group) {
    return prices_of(llama(std::string("data: 16, zero_stage: 3") + group))
        .stages.front()
        .units[1]
        .gather.total();
  };
  EXPECT_LT(gather(", zero_group: 8"), gather(""));
}

TEST(Sharded, FoldedEqualsUnfolded) {
  for (const char* layout : {"data: 16, zero_stage: 2", "pipeline: 2, data: 8, zero_stage: 3",
                             "pipeline: 2, virtual_stages: 2, tensor: 2, data: 4, zero_stage: 3",
                             "pipeline: 2, virtual_stages: 2, context: 2, data: 4, zero_stage: 2",
                             "tensor: 2, context: 2, pipeline: 2, data: 2, zero_stage: 1"}) {
    SCOPED_TRACE(layout);
    const bool interleaved = std::string(layout).find("virtual") != std::string::npos;
    const Scenario scenario = llama(layout, interleaved ? "schedule: interleaved-1f1b\n" : "");
    const Report folded = simulate(scenario), unfolded = simulate(scenario, {.unfold = true});
    EXPECT_EQ(unfolded.simulated_ranks, 16);
    EXPECT_EQ(folded.iteration_time, unfolded.iteration_time);
    EXPECT_EQ(folded.breakdown, unfolded.breakdown);
    Program program = simulate_in_full(scenario).program;
    program.loads.clear();  // what a pass loses to buckets beside it depends on when both run
    program.flows.clear();  // so does what both lose on the links of their rank
    program.links = {};
    EXPECT_EQ(run(program), longest_path(program));
  }
}

// A ring message is hidden where the block before it is longer: with long sequences all of it, on a slow
// network not.
TEST(ContextRing, IsHiddenBehindLongerBlocks) {
  Scenario scenario = llama("context: 2, data: 8");
  std::get<TransformerSpec>(scenario.model).max_sequence_length = 65536;
  scenario.training.sequence_length = 65536;
  const auto exposed = [](const Scenario& s) {
    return prices_of(s).stages.front().forward.of(Category::kContextComm);
  };
  EXPECT_EQ(exposed(scenario), Duration::zero());
  scenario.overlap.context = false;
  const Duration whole = exposed(scenario);
  EXPECT_GT(whole, Duration::zero());
  // In another order the two ranks of the ring are on two nodes.
  scenario.parallelism.order = {Axis::kTensor, Axis::kData, Axis::kExpert, Axis::kContext, Axis::kPipeline};
  EXPECT_GT(exposed(scenario), whole);
}

TEST(TensorGroups, CostMoreAcrossNodesThanInside) {
  const auto tensor = [](const char* order) {
    const Scenario scenario =
        llama(std::string("tensor: 8, data: 2, sequence_parallel: true, order: ") + order);
    return prices_of(scenario).stages.front().forward.of(Category::kTensorComm);
  };
  EXPECT_GT(tensor("[data, tensor, context, expert, pipeline]"),
            tensor("[tensor, context, expert, data, pipeline]"));
}

// In a node a message of a ring takes as long however long the ring is: neighbours are a communicator of two.
// 16.8 MB of keys and values, 11 us and 292 GB/s: 68.4 us.
TEST(ContextRings, InANodeTakeTheSameForEachMessage) {
  const auto message = [](int context) {
    Scenario scenario = scenario_of(
        "stagecraft: 1\nmodel: llama-2-7b\ncluster: {node: dgx-h100, nodes: 1}\noverlap: {context: false}\n"
        "parallelism: {context: " +
        std::to_string(context) +
        "}\ntraining: {global_batch_size: 8, sequence_length: " + std::to_string(1024 * context) + "}\n");
    const StagePrice stage = prices_of(scenario).stages.front();
    return to_seconds(stage.forward.of(Category::kContextComm)) / (32.0 * (context - 1));
  };
  EXPECT_NEAR(message(8), 68.4e-6, 1e-6);
  EXPECT_NEAR(message(4), message(8), 1e-9);
  EXPECT_NEAR(message(2), message(8), 1e-9);
}

// What user buffers hide at most is the share that the profile states.
TEST(TensorGroups, AreHiddenInPartByChunkedGemms) {
  Scenario scenario = llama("tensor: 8, data: 2, sequence_parallel: true");
  const auto tensor = [](const Scenario& s) {
    return to_seconds(prices_of(s).stages.front().forward.of(Category::kTensorComm));
  };
  const double whole = tensor(scenario);
  scenario.overlap.tensor = true;
  const double share = scenario.profile->tensor_overlap.value;
  EXPECT_LT(tensor(scenario), whole);
  EXPECT_GE(tensor(scenario), (1 - share) * whole * (1 - 1e-6));
}

// Experts over more ranks: inside a node little changes, over nodes the exchange pays for the network.
TEST(ExpertExchange, GrowsAcrossNodes) {
  const auto exchange = [](int expert) {
    return prices_of(mixtral(expert)).stages.front().forward.of(Category::kExpertComm);
  };
  EXPECT_EQ(exchange(1), Duration::zero());
  EXPECT_GT(exchange(4), Duration::zero());
  EXPECT_GT(exchange(16), 2 * exchange(8));
  EXPECT_GT(exchange(32), exchange(16));
}

// On one stage the backward of a micro-batch and the forward of the next pair: 1 / 1.19 of their exchanges is
// hidden, m - 1 times. One micro-batch alone has nothing to hide behind.
TEST(ExpertExchange, HidesBehindAnotherMicroBatch) {
  Scenario scenario = mixtral(8);
  const auto exchange = [&](int micro_batches, bool overlapped) {
    scenario.training.global_batch_size = 32 * scenario.training.micro_batch_size * micro_batches;
    scenario.overlap.expert = overlapped;
    return to_seconds(part_of(simulate(scenario), Category::kExpertComm));
  };
  EXPECT_EQ(exchange(1, true), exchange(1, false));
  const double each = exchange(3, false) - exchange(2, false);
  EXPECT_NEAR(exchange(2, true), exchange(2, false) - each / 1.19, 0.001 * each);
  EXPECT_NEAR(exchange(8, true), exchange(8, false) - 7 * each / 1.19, 0.001 * each);
}

// What software hides less of it, as its streams wait for the host, it hides in a graph of the whole iteration.
TEST(ExpertExchange, HidesMoreInOneGraph) {
  Scenario scenario = mixtral(8);
  scenario.options.rules.expert_overlap = 0.4;
  const auto hidden = [&](CudaGraphs graphs) {
    scenario.options.cuda_graphs = graphs;
    const auto exchange = [&](int micro_batches, bool overlapped) {
      scenario.training.global_batch_size = 32 * scenario.training.micro_batch_size * micro_batches;
      scenario.overlap.expert = overlapped;
      return to_seconds(part_of(simulate(scenario), Category::kExpertComm));
    };
    return (exchange(2, false) - exchange(2, true)) / (exchange(3, false) - exchange(2, false));
  };
  EXPECT_NEAR(hidden(CudaGraphs::kNone), 0.4, 0.001);
  EXPECT_NEAR(hidden(CudaGraphs::kLayers), 0.4, 0.001);
  EXPECT_NEAR(hidden(CudaGraphs::kIteration), 1 / 1.19, 0.001);
}

// Passes of the warm-up and the cool-down have no neighbour of the other kind: a pipeline of p stages hides
// the exchanges of m - 1 pairs on its last stage, of m - p + 1 on its first.
TEST(ExpertExchange, IsExposedWhileAPipelineFillsAndDrains) {
  Scenario scenario = mixtral(8);
  scenario.parallelism.data = 8;
  scenario.parallelism.pipeline = 4;
  scenario.training.global_batch_size = 8 * 4 * scenario.training.micro_batch_size;
  const auto saved = [&](const char* schedule) {
    scenario.schedule.name = schedule;
    scenario.overlap.expert = false;
    const Report apart = simulate(scenario);
    scenario.overlap.expert = true;
    const Report beside = simulate(scenario);
    EXPECT_LE(beside.iteration_time, apart.iteration_time) << schedule;
    return 1 - to_seconds(part_of(beside, Category::kExpertComm)) /
                   to_seconds(part_of(apart, Category::kExpertComm));
  };
  // Pairs of four micro-batches: 1, 2, 3 and 3 on the four ranks. The breakdown is of the last.
  EXPECT_NEAR(saved("1f1b"), 3 / 4.0 / 1.19, 0.01);
  EXPECT_LT(saved("gpipe"), 1.01 / 4 / 1.19);
}

// An exchange hides behind the shared experts as far as they last, at the loss of chunked overlap, and no
// more.
TEST(ExpertExchange, HidesBehindTheSharedExperts) {
  Scenario scenario = mixtral(32);
  auto& experts = *std::get<TransformerSpec>(scenario.model).experts;
  const auto comm = [&](std::int64_t width, bool overlapped) {
    experts.shared = width > 0 ? 1 : 0;
    experts.shared_ffn_hidden = width;
    scenario.overlap.shared_experts = overlapped;
    return prices_of(scenario).stages.front().forward.of(Category::kExpertComm);
  };
  const Duration exposed = comm(0, false);
  EXPECT_EQ(comm(0, true), exposed);
  EXPECT_EQ(comm(2048, false), exposed);
  const Duration narrow = comm(2048, true), wide = comm(8192, true);
  EXPECT_LT(narrow, exposed);
  EXPECT_LT(wide, narrow);
  scenario.options.expert_dispatcher = ExpertDispatcher::kAllGather;
  EXPECT_EQ(comm(2048, true), comm(2048, false));
}

// In pairs the exchanges of a pass last at least 1 - 1 / 1.19 of what they take alone, and where each pass
// has compute enough for them, no more; passes without a partner pay for theirs.
TEST(FusedPairs, HideTheExchangesOfEitherPass) {
  Scenario scenario = mixtral(8);
  scenario.parallelism.data = 16;
  scenario.parallelism.pipeline = 2;
  scenario.schedule.name = "dualpipe";
  scenario.schedule.fused_share = 1;
  const Report apart = simulate(scenario);
  scenario.schedule.fused_share = {};
  const Report beside = simulate(scenario);
  scenario.overlap.expert = true;
  EXPECT_EQ(simulate(scenario).iteration_time, beside.iteration_time);
  const Duration before = part_of(apart, Category::kExpertComm),
                 after = part_of(beside, Category::kExpertComm);
  EXPECT_LT(beside.iteration_time, apart.iteration_time);
  EXPECT_LT(to_seconds(after), 0.9 * to_seconds(before));
  EXPECT_GE(to_seconds(after), (1 - 1 / 1.19) * to_seconds(before));
  EXPECT_EQ(part_of(beside, Category::kForward), part_of(apart, Category::kForward));
}

// Experts on twice as many ranks have half as many replicas, hence half the shards to reduce: less data
// traffic. (Not less time where rings that cross rails are slower.)
TEST(ExpertGradients, AreReducedOverTheirOwnRanks) {
  const auto reductions = [](int expert) {
    Scenario scenario = mixtral(expert);
    scenario.cluster->fabric.crossing_efficiency.reset();
    const IterationPrices prices = prices_of(scenario);
    Duration sum{};
    for (const PassPrice& bucket : prices.ranks.front().gradient_buckets.front()) sum += bucket.total();
    return sum;
  };
  EXPECT_GT(reductions(1), reductions(4));
  EXPECT_GT(reductions(4), reductions(32));
}

// ZeRO 2 gathers weights by the buckets of overlapped gradients, though it reduces none in them.
TEST(Buckets, OfAParameterEachAreTooMany) {
  for (const int zero : {0, 1, 2}) {
    for (const char* overlap : {"parameters: false", "gradients: true"}) {
      const Scenario scenario = scenario_of(
          "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\noptions: "
          "{bucket_parameters: "
          "1}\ntraining: {global_batch_size: 8}\nparallelism: {zero_stage: " +
          std::to_string(zero) + "}\noverlap: {" + overlap + "}\n");
      Diagnostics diagnostics;
      EXPECT_FALSE(prepare(scenario, diagnostics)) << zero << ", " << overlap;
      EXPECT_EQ(diagnostics.items().front().code, "too-many");
    }
  }
}

// System: a word embedding of 65.5 M of 0.4 G parameters, buckets of 40 M. Its gradient is complete at the
// very end, and nobody cuts it: the last bucket of the backward, the first of the forward, has it and less
// than a bucket of others. A stage without it ends with the rest of a bucket.
TEST(Buckets, LeaveTheEmbeddingWhole) {
  const auto largest = [](const std::vector<PassPrice>& buckets) {
    return std::ranges::max_element(buckets, {}, &PassPrice::total) - buckets.begin();
  };
  const char* const small = "options: {bucket_parameters: 40000000}\n";
  const IterationPrices one = prices_of(llama("data: 16, zero_stage: 1", small));
  const auto& reduced = one.ranks[0].gradient_buckets.front();
  const auto& gathered = one.ranks[0].parameter_buckets.front();
  ASSERT_GT(reduced.size(), 3u);
  EXPECT_EQ(reduced.size(), gathered.size());
  EXPECT_EQ(largest(reduced), std::ssize(reduced) - 1);
  EXPECT_EQ(largest(gathered), 0);
  const double times = reduced.back().total() / std::chrono::duration<double, std::nano>(reduced[0].total());
  EXPECT_GT(times, 0.95 * 65.5 / 40);
  EXPECT_LT(times, 105.5 / 40);
  const IterationPrices two = prices_of(llama("data: 8, pipeline: 2, zero_stage: 1", small));
  const auto& last = two.ranks[1].gradient_buckets.front();
  EXPECT_NE(largest(last), std::ssize(last) - 1);
}

// Gathers that nothing hides have the buckets of reductions that overlap; without any overlap there is one.
TEST(Buckets, OfGathersAreThoseOfGradients) {
  const auto gathers = [](const char* overlap) {
    const std::string more = std::string("options: {bucket_parameters: 40000000}\noverlap: ") + overlap;
    return prices_of(llama("data: 16, zero_stage: 1", more)).ranks[0].parameter_buckets.front().size();
  };
  EXPECT_GT(gathers("{gradients: true, parameters: true}\n"), 3u);
  EXPECT_EQ(gathers("{gradients: true, parameters: false}\n"),
            gathers("{gradients: true, parameters: true}\n"));
  EXPECT_EQ(gathers("{gradients: false, parameters: false}\n"), 1u);
}

// Options of axes that are not there change nothing, to the bit.
TEST(DegreeOne, IsTheModelWithoutTheAxis) {
  const Report plain = simulate(llama("tensor: 2, pipeline: 2, data: 4"));
  Scenario scenario = llama("tensor: 2, pipeline: 2, data: 4, context: 1, expert: 1, expert_tensor: 1");
  scenario.overlap.context = false;
  scenario.overlap.expert = true;
  scenario.parallelism.context_exchange = ContextExchange::kAllGather;
  EXPECT_EQ(simulate(scenario).timeline_hash, plain.timeline_hash);
}

// Pencil: 1/16 of the shard of 16-bit states goes at 0.87 * 31.5 GB/s, 28 bytes a parameter at 0.12 of an eighth of
// 409.6 GB/s.
TEST(Offload, OfTheOptimizerTakesCopiesAndHostMemory) {
  const Scenario scenario = llama("data: 16, zero_stage: 1", "offload: {optimizer: 1}\n");
  const OffloadPrice offload = prices_of(scenario).offload;
  const double stepped = static_cast<double>(parameter_count(std::get<TransformerSpec>(scenario.model))) / 16;
  const double expected = stepped * 4 / (0.87 * 31.5e9) + stepped * 28 / (0.12 * 409.6e9 / 8);
  EXPECT_NEAR(to_seconds(offload.optimizer_step), expected, 1e-6);
  EXPECT_DOUBLE_EQ(offload.available.count(), 0.87 * 31.5e9);
  EXPECT_GT(time_of(scenario), time_of(llama("data: 16, zero_stage: 1")));
}

// Memory of the host is shared by the GPUs that the job has there, not by those that it leaves alone.
TEST(Offload, OnPartOfANodeHasAllOfItsMemory) {
  const auto host_step = [](const std::string& cluster) {
    Scenario scenario =
        scenario_of("stagecraft: 1\nmodel: llama-3-8b\ncluster: " + cluster +
                    "\ntraining: {global_batch_size: 8, sequence_length: 4096}\noffload: {optimizer: 1}\n");
    return to_seconds(prices_of(scenario).offload.optimizer_step);
  };
  const auto parameters = 8'030'261'248.0;
  const auto expected = [&](int gpus) {
    return parameters * 6 / (0.87 * 63e9) + parameters * 28 / (0.12 * 614.4e9 / gpus);
  };
  EXPECT_NEAR(host_step("{node: dgx-h100, gpus: 1}"), expected(1), 0.01 * expected(1));
  EXPECT_NEAR(host_step("{node: dgx-h100, gpus: 4}"), expected(4), 0.01 * expected(4));
  EXPECT_NEAR(host_step("{node: dgx-h100, nodes: 1}"), expected(8), 0.01 * expected(8));
}

// Four GPUs have 6.3 GB/s to their root together; without a rate of its own the uplink is one GPU's 63 GB/s.
TEST(Offload, BelowAPcieSwitchSharesItsUplink) {
  for (const NetworkMode mode : {NetworkMode::kClosedForm, NetworkMode::kFlow}) {
    const auto job = [&](int gpus, Bandwidth uplink) {
      Scenario scenario = scenario_of(
          "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, gpus: 4}\n"
          "training: {global_batch_size: 8, sequence_length: 4096}\noffload: {activations: 1}\n");
      scenario.network.mode = mode;
      NodeSpec& node = scenario.cluster->groups.front().node;
      node.pcie = Bandwidth(63e9);
      node.gpus_per_pcie_switch = gpus;
      node.pcie_uplink = uplink;
      return scenario;
    };
    const auto rate = [](const Scenario& scenario) { return prices_of(scenario).offload.available.count(); };
    EXPECT_DOUBLE_EQ(rate(job(0, Bandwidth(0))), 0.87 * 63e9);
    EXPECT_DOUBLE_EQ(rate(job(1, Bandwidth(0))), 0.87 * 63e9);
    EXPECT_DOUBLE_EQ(rate(job(4, Bandwidth(0))), 0.87 * 63e9 / 4);
    EXPECT_DOUBLE_EQ(rate(job(4, Bandwidth(6.3e9))), 0.87 * 6.3e9 / 4);
    EXPECT_DOUBLE_EQ(rate(job(8, Bandwidth(6.3e9))), 0.87 * 6.3e9 / 4);  // four of the eight are used
    EXPECT_GT(time_of(job(4, Bandwidth(6.3e9))), time_of(job(0, Bandwidth(0))));
  }
}

// Weights are read for each pass: with short sequences the passes wait, with long ones they do not.
TEST(Offload, OfWeightsStallsWherePassesAreShort) {
  Scenario scenario = llama("data: 16", "offload: {weights: 1}\n");
  scenario.training.sequence_length = 512;
  const OffloadPrice stalled = prices_of(scenario).offload;
  EXPECT_GT(stalled.stall, Duration::zero());
  EXPECT_GT(stalled.required_weights, stalled.available);
  scenario.training.sequence_length = 4096;
  scenario.training.micro_batch_size = 4;
  scenario.training.global_batch_size = 64;
  const OffloadPrice smooth = prices_of(scenario).offload;
  EXPECT_EQ(smooth.stall, Duration::zero());
  EXPECT_LE(smooth.required_weights, smooth.available);
}

// FSDP's shards are the fp32 weights of the optimizer, with no 16-bit weights beside them; unless there are none.
TEST(Offload, OfWeightsLeavesMastersWhereTheyAre) {
  const auto sharded = [](const std::string& rest) {
    return llama("data: 16, zero_stage: 3", "options: {software: fsdp2}\n" + rest);
  };
  const Scenario both = sharded("offload: {optimizer: 0.5, weights: 1}\n");
  EXPECT_EQ(time_of(both), time_of(sharded("offload: {optimizer: 0.5}\n")));
  EXPECT_EQ(prices_of(both).offload.required_weights, Bandwidth(0));
  Scenario weights = sharded("offload: {weights: 1}\n");
  EXPECT_FALSE(prices_of(weights).offload.used());
  weights.training.master_weights = false;
  EXPECT_GT(prices_of(weights).offload.required_weights, Bandwidth(0));
}

// What is kept in all is copied, also where nothing of it stays; the needed rate grows with the share.
TEST(Offload, OfActivationsNeedsBandwidthInProportion) {
  const auto needed = [](const char* share) {
    return prices_of(llama("data: 16", std::string("offload: {activations: ") + share + "}\n"))
        .offload.required_activations.count();
  };
  EXPECT_GT(needed("0.5"), 0);
  EXPECT_NEAR(needed("1"), 2 * needed("0.5"), 1e-6 * needed("1"));
}

TEST(Offload, OfNothingIsNotPriced) {
  EXPECT_FALSE(prices_of(llama("data: 16")).offload.used());
}

}  // namespace
}  // namespace stagecraft
