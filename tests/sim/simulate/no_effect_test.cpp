// A key that is said to have had no effect has none, and one that is not said to have none moves something
// somewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

// A key and two values that differ.
struct Alternatives {
  const char* path;
  const char* first;
  const char* second;
};
const Alternatives kAlternatives[] = {
    {"schedule.fused_share", "0.6", "0.9"},
    {"overlap.gradients", "true", "false"},
    {"overlap.parameters", "true", "false"},
    {"overlap.pipeline", "true", "false"},
    {"overlap.tensor", "true", "false"},
    {"overlap.context", "true", "false"},
    {"overlap.expert", "true", "false"},
    {"overlap.shared_experts", "true", "false"},
    {"options.scatter_gather", "true", "false"},
    {"options.fused_kernels", "true", "false"},
    {"options.unfused", "[]", "[swiglu, rope]"},
    {"options.unfused", "[rmsnorm]", "[gelu]"},
    {"options.fused", "[]", "[swiglu, rope]"},
    {"options.fused", "[rmsnorm]", "[gelu]"},
    {"options.gradient_accumulation_fusion", "true", "false"},
    {"options.bucket_parameters", "10000000", "100000000"},
    {"options.reshard_after_forward", "true", "false"},
    {"options.memory.keep_outputs", "true", "false"},
    {"options.memory.loss_chunks", "1", "8"},
    {"options.memory.gathered_logits", "false", "true"},
    {"parallelism.replicated_embedding", "false", "true"},
    {"options.expert_dispatcher", "all-to-all", "all-gather"},
    {"options.expert_dispatcher", "all-to-all", "node-aware"},
    {"options.fp8_dispatch", "false", "true"},
    {"options.fp8_parameters", "false", "true"},
    {"options.fp8_recipe", "delayed", "current"},
    {"options.fp8_recipe", "mxfp8", "nvfp4"},
    {"options.fp8_attention", "none", "current"},
    {"options.fused_experts", "false", "true"},
    {"training.sixteen_bit_layers", "{first: 1}", "{first: 1, last: 2}"},
    {"offload.weights", "0.5", "1"},
    {"parallelism.context_exchange", "p2p", "all-gather"},
    {"parallelism.sequence_parallel", "true", "false"},
    {"parallelism.data", "2", "4"},
    {"parallelism.zero_stage", "0", "1"},
    {"parallelism.zero_stage", "0", "3"},
    {"parallelism.zero_group", "1", "2"},
    {"model.experts.imbalance", "1", "1.5"},
    {"training.recompute", "none", "selective"},
    {"training.attention", "flash", "unfused"},
    {"training.gradient_dtype", "fp32", "bf16"},
    {"training.moment_dtype", "fp32", "bf16"},
    {"training.master_weights", "true", "false"},
    {"training.master_remainders", "true", "false"},
    {"training.precision", "bf16", "fp16"},
    {"training.autocast", "false", "true"},
    {"training.sequence_length", "1024", "2048"},
    {"cluster.fabric.switch_latency", "1 us", "2 us"},
    {"cluster.fabric.oversubscription", "1", "2"},
    {"cluster.fabric.tensor_collective_factor", "1", "2"},
    {"cluster.fabric.tensor_collective_overhead", "1 us", "2 us"},
    {"model.message", "1 MiB", "2 MiB"},
};

struct Case {
  const char* file;
  std::vector<std::string> overrides;
};
const Case kCases[] = {
    {"pipeline-4x8.yaml", {}},
    {"llama3-8b-64xA100.yaml", {}},
    {"llama3-8b-64xA100.yaml", {"parallelism.zero_stage=3"}},
    {"llama3-8b-64xA100.yaml", {"training.attention=unfused", "parallelism.zero_stage=1"}},
    {"llama3-8b-64xA100.yaml", {"parallelism.zero_stage=0", "overlap.gradients=false"}},
    {"llama3-8b-64xA100.yaml", {"overlap.gradients=false", "overlap.parameters=false"}},
    {"seqsel-22b-8xA100-full.yaml", {}},
    {"mixtral-8x7b-64xH100.yaml", {}},
    {"mixtral-8x7b-64xH100.yaml", {"options.expert_dispatcher=all-gather"}},
    {"mixtral-8x7b-64xH100.yaml",
     {"parallelism.pipeline=1", "parallelism.virtual_stages=1", "schedule=1f1b",
      "training.global_batch_size=32"}},
    {"mixtral-8x7b-64xH100.yaml", {"schedule=dualpipe", "parallelism.virtual_stages=1"}},
    {"mixtral-8x7b-64xH100.yaml", {"parallelism.expert=1"}},
    // Shared experts of software that keeps what sequence parallelism gathers.
    {"mixtral-8x7b-64xH100.yaml",
     {"cluster.nodes=1", "parallelism.tensor=1", "parallelism.pipeline=1", "parallelism.virtual_stages=1",
      "parallelism.expert=8", "schedule=1f1b", "model.experts.shared=1", "options.software=fsdp2",
      "training.global_batch_size=16"}},
    {"mixtral-8x7b-64xH100.yaml", {"cluster.fabric.nodes_per_leaf=2"}},
    {"llama3-8b-64xA100.yaml", {"cluster.fabric.nodes_per_leaf=2"}},
    {"mixtral-8x7b-64xH100.yaml", {"model.experts.capacity_factor=1"}},
    {"mixtral-8x7b-64xH100.yaml",
     {"model.experts.capacity_factor=1.25", "model.experts.pad_to_capacity=true"}},
    // One replica of the dense weights, four of the experts'.
    {"mixtral-8x7b-64xH100.yaml",
     {"cluster.nodes=2", "parallelism.tensor=8", "parallelism.pipeline=2", "parallelism.virtual_stages=1",
      "parallelism.expert=2", "schedule=1f1b", "training.global_batch_size=16"}},
    {"llama3-8b-fsdp-64xH100.yaml",
     {"parallelism.pipeline=2", "parallelism.data=null", "parallelism.zero_group=null",
      "options.software=fsdp2"}},
    // Of two copies of the model one is reduced while the other has passes.
    {"llama3-8b-fsdp-64xH100.yaml",
     {"parallelism.pipeline=4", "parallelism.data=null", "parallelism.zero_group=null",
      "options.software=fsdp2", "schedule=chimera"}},
    {"llama3-8b-fsdp-64xH100.yaml",
     {"parallelism.pipeline=2", "parallelism.data=null", "parallelism.zero_group=8",
      "options.software=fsdp2"}},
    {"llama3-8b-fsdp-64xH100.yaml",
     {"parallelism.pipeline=2", "parallelism.data=null", "parallelism.zero_group=null",
      "options.software=fsdp2", "options.memory.whole_gradients=false"}},
};

void PrintTo(const Case& the_case, std::ostream* out) {
  *out << the_case.file << " " << testing::PrintToString(the_case.overrides);
}

struct Tried {
  std::string result;  // of run --json without its warnings; empty where it cannot run
  bool said = false;   // that the key had no effect
};

Tried run_with(const Case& the_case, const char* path, const char* value) {
  std::vector<std::string> overrides = the_case.overrides;
  overrides.push_back(std::string(path) + "=" + value);
  Diagnostics diagnostics;
  const auto scenario = load_scenario(STAGECRAFT_SOURCE_DIR "/scenarios/" + std::string(the_case.file),
                                      overrides, repository_files(), diagnostics);
  Diagnostics refused;
  if (!scenario || !prepare(*scenario, refused)) return {};
  Tried tried;
  tried.said = std::ranges::any_of(scenario->warnings, [&](const Diagnostic& warning) {
    return warning.code == "no-effect" && warning.path == path;
  });
  Report report = simulate(*scenario);
  // Of uplinks it is known only once the job is priced.
  tried.said |= std::ranges::any_of(report.warnings, [&](const std::string& warning) {
    return warning.starts_with(std::string(path) + ": had no effect");
  });
  report.warnings.clear();
  tried.result = render_json(report);
  return tried;
}

class NoEffect : public testing::TestWithParam<Case> {};

// Property: where both values of a key are said to have had no effect, the results are the same to the byte.
// A key that changes nothing is named for one of its values at least: `false` of what cannot be on asks for
// nothing.
TEST_P(NoEffect, IsSaidOfTheKeysThatChangeNothing) {
  int said = 0;
  for (const Alternatives& key : kAlternatives) {
    SCOPED_TRACE(key.path);
    const Tried first = run_with(GetParam(), key.path, key.first);
    const Tried second = run_with(GetParam(), key.path, key.second);
    if (first.result.empty() || second.result.empty()) continue;
    const bool same = first.result == second.result;
    EXPECT_TRUE(same || !first.said || !second.said);
    EXPECT_TRUE(!same || first.said || second.said);
    said += first.said && second.said ? 1 : 0;
  }
  EXPECT_GE(said, 3);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, NoEffect, testing::ValuesIn(kCases));

std::string code_of(const char* path, const std::vector<std::string>& overrides) {
  Diagnostics diagnostics;
  const auto scenario = load_scenario(STAGECRAFT_SOURCE_DIR "/scenarios/llama3-8b-64xA100.yaml", overrides,
                                      repository_files(), diagnostics);
  for (const Diagnostic& warning : scenario->warnings)
    if (warning.path == path) return warning.code;
  return "";
}

// Latent attention rotates a part of each key, whatever `position` says.
TEST(Unfused, RotationsAreThoseOfLatentAttentionToo) {
  const auto code = [](const std::string& more) {
    return code_of("options.unfused", {"model={family: gpt, layers: 2, hidden: 1024, heads: 8" + more + "}",
                                       "options.software=megatron-core", "options.unfused=[rope]"});
  };
  EXPECT_EQ(code(""), "no-effect");
  EXPECT_EQ(
      code(", latent_attention: {kv_rank: 512, nope_head_size: 128, rope_head_size: 64, value_head_size: "
           "128}"),
      "");
}

// What runs fused in any case counts where nothing is fused, and where the software leaves it.
TEST(Fused, CountsWhereTheOperationWouldNotBe) {
  const auto code = [](const char* software, const char* fused, const char* kernels) {
    return code_of("options.fused",
                   {std::string("options.software=") + software, std::string("options.fused=") + fused,
                    std::string("options.fused_kernels=") + kernels});
  };
  EXPECT_EQ(code("megatron-core", "[rmsnorm]", "true"), "no-effect");
  EXPECT_EQ(code("megatron-core", "[rmsnorm]", "false"), "");
  EXPECT_EQ(code("megatron-lm-2021", "[rmsnorm]", "true"), "");
  EXPECT_EQ(code("megatron-core", "[gelu]", "false"), "no-effect");
}

// A quarter of masters and bf16 moments makes up for the 2 bytes that the other masters take then.
TEST(Offload, OfASmallShareThatMakesMastersWholeIsNamed) {
  const auto code = [](const char* share) {
    return code_of("offload.optimizer",
                   {"training.moment_dtype=bf16", std::string("offload.optimizer=") + share});
  };
  EXPECT_EQ(code("0.2"), "little-effect");
  EXPECT_EQ(code("0.25"), "");
}

// What software does under ZeRO beside sharing it does with one replica, too: Megatron-Core keeps weights in
// fp8, DeepSpeed joins gradients for the step.
TEST(Zero, OfOneReplicaHasNoEffectButWhereItChoosesOtherCode) {
  const auto code = [](std::vector<std::string> more) {
    std::vector<std::string> all{"cluster.node=dgx-h100", "cluster.nodes=1", "parallelism.tensor=8",
                                 "parallelism.data=1", "parallelism.zero_stage=1"};
    all.insert(all.end(), more.begin(), more.end());
    return code_of("parallelism.zero_stage", all);
  };
  EXPECT_EQ(code({"options.software=megatron-core"}), "no-effect");
  EXPECT_EQ(code({"options.software=megatron-core", "training.precision=fp8"}), "");
  EXPECT_EQ(code({"options.software=megatron-core", "training.precision=fp8", "options.fp8_parameters=true"}),
            "no-effect");
  EXPECT_EQ(code({"options.software=megatron-lm-2021", "options.memory.bucket_copies=true"}), "");
}

// A DGX A100 has NICs of 25 GB/s behind PCIe of 31.5.
TEST(Nics, BehindASlowerPcieAreNamed) {
  const auto code = [](std::vector<std::string> more) {
    return code_of("cluster.fabric.nic_bandwidth", std::move(more));
  };
  EXPECT_EQ(code({"cluster.fabric.nic_bandwidth=31 GB/s"}), "");
  EXPECT_EQ(code({"cluster.fabric.nic_bandwidth=50 GB/s"}), "more-than-possible");
  EXPECT_EQ(code({"cluster.fabric.nic_bandwidth=50 GB/s", "cluster.fabric.nics_per_node=4"}), "");
  EXPECT_EQ(code({"cluster.fabric.nic_bandwidth=50 GB/s", "cluster.nodes=1"}), "");
}

TEST(Zero, OverGroupsOfOneHasNoEffect) {
  EXPECT_EQ(code_of("parallelism.zero_stage", {"parallelism.zero_stage=3", "parallelism.zero_group=1"}),
            "no-effect");
  EXPECT_EQ(code_of("parallelism.zero_stage", {"parallelism.zero_stage=3", "parallelism.zero_group=2"}), "");
}

}  // namespace
}  // namespace stagecraft
