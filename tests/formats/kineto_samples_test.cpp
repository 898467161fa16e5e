#include "formats/kineto_samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/kineto_traces.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

MeasuredTrace measured(const TraceText& text, int rank = 0) {
  Diagnostics diagnostics;
  MeasuredTrace out{.name = "t.json", .trace = read_text(text.str(), diagnostics).value(), .steps = {}};
  out.trace.rank = rank;
  out.steps = measured_steps(out.trace, {}, out.name, diagnostics).value();
  return out;
}

// System: steps 1 to 4, in each one product of 8 x 4 x 2; 90 us in the first, then 10, 12 and 11 us, 2 us of
// the last in a second kernel.
// Expectations: the first is left out; median 11 us, least 10 us, spread (p84 - p16)/(2 median) of ranks.
TEST(KinetoSamples, AProductIsTheMedianOverTheStepsAfterTheFirst) {
  TraceText text;
  const int lengths[] = {90, 10, 12, 9};
  for (int i = 0; i < 4; ++i) {
    text.step(i + 1, 100 * i, 100);
    text.kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 100 * i + 1, lengths[i]);
  }
  text.again("splitKreduce_kernel", 350, 2);
  Diagnostics diagnostics;
  const KinetoSamples made = kineto_samples({measured(text)}, 0, diagnostics);
  EXPECT_THAT(diagnostics.items(), IsEmpty());
  ASSERT_THAT(made.samples, SizeIs(1));
  const Sample& sample = made.samples[0];
  EXPECT_EQ(sample.family, "gemm");
  EXPECT_EQ(sample.shape, (std::map<std::string, std::int64_t>{{"m", 8}, {"n", 4}, {"k", 2}, {"batch", 1}}));
  EXPECT_EQ(sample.tags.at("layout"), "TN");
  EXPECT_EQ(sample.tags.at("dtype"), "bf16");
  EXPECT_DOUBLE_EQ(sample.median_s, 11e-6);
  EXPECT_DOUBLE_EQ(sample.min_s, 10e-6);
  EXPECT_NEAR(sample.spread, (11.68 - 10.32) / 22, 1e-12);
  EXPECT_EQ(sample.repeats, 3);
  EXPECT_EQ(sample.flops, 2.0 * 8 * 4 * 2);
}

TEST(KinetoSamples, EverySampleSaysThatItIsOfATrainingRunAndReadsBack) {
  TraceText text;
  text.kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 1, 5);
  text.collective("AllReduce", collective_arguments("allreduce", 1000, 1000), 10, 7);
  Diagnostics diagnostics;
  const KinetoSamples made = kineto_samples({measured(text)}, 0, diagnostics);
  ASSERT_THAT(made.samples, SizeIs(2));
  for (const Sample& sample : made.samples) {
    EXPECT_EQ(sample.tags.at("source"), "profile of a training run");
    EXPECT_EQ(sample.tags.at("load"), "training");
    EXPECT_THAT(sample.setup.clock_policy, HasSubstr("unknown"));
    EXPECT_EQ(sample.setup.device, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(std::get<Sample>(parse_sample(to_json_line(sample))), sample);
  }
}

// One call of attention over 2 samples of 16 tokens, 4 heads of 8, causal: 2*2*16*16*4*8*2/2 FLOPs; its
// backward is three kernels of 10, 20 and 3 us.
TEST(KinetoSamples, AttentionIsTheSumOfTheKernelsOfACall) {
  const auto arguments = [](const std::string& before, const std::string& values) {
    return fmt::format(
        R"("Input Dims": [{0}[2, 16, 4, 8], [2, 16, 4, 8], [2, 16, 4, 8]], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16"], "Concrete Inputs": {1})",
        before, values);
  };
  TraceText text;
  text.kernel("aten::_flash_attention_forward",
              arguments("", R"(["", "", "", "", "", "16", "16", "0.", "True"])"), "flash_fwd_kernel", 1, 7);
  text.kernel("aten::_flash_attention_backward",
              arguments("[2, 16, 4, 8], ", R"(["", "", "", "", "", "", "", "", "16", "16", "0.", "True"])"),
              "flash_bwd_dot_do_o_kernel", 20, 10);
  text.again("flash_bwd_dq_dk_dv_loop_kernel", 30, 20);
  text.again("void convert_dq", 50, 3);
  Diagnostics diagnostics;
  const KinetoSamples made = kineto_samples({measured(text)}, 0, diagnostics);
  EXPECT_THAT(made.unused, IsEmpty());
  ASSERT_THAT(made.samples, SizeIs(2));
  const Sample& backward = made.samples[0];
  const Sample& forward = made.samples[1];
  EXPECT_EQ(forward.op, "flash_forward");
  EXPECT_EQ(forward.flops, 2 * 2 * 16 * 16 * 4 * 8 * 2 / 2);
  EXPECT_EQ(forward.tags.at("implementation"), "fa2");
  EXPECT_EQ(forward.tags.at("causal"), "true");
  EXPECT_DOUBLE_EQ(forward.median_s, 7e-6);
  EXPECT_EQ(backward.op, "flash_backward");
  EXPECT_EQ(backward.flops, 2.5 * forward.flops);
  EXPECT_DOUBLE_EQ(backward.median_s, 33e-6);
  EXPECT_EQ(std::get<Sample>(parse_sample(to_json_line(backward))), backward);
}

TEST(KinetoSamples, MemoryBoundOperatorsHaveTheBytesOfTheirTensors) {
  TraceText text;
  text.kernel("aten::gelu", R"("Input Dims": [[4, 8]], "Input type": ["c10::BFloat16"])", "gelu_kernel", 1,
              5);
  text.kernel("aten::gelu", "", "gelu_kernel", 10, 5);
  text.kernel("Unknown", "", "some_kernel", 20, 5);
  text.raw(
      R"({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 30, "dur": 5, "args": {"stream": 7, "device": 0}})");
  Diagnostics diagnostics;
  const KinetoSamples made = kineto_samples({measured(text)}, 0, diagnostics);
  ASSERT_THAT(made.samples, SizeIs(1));
  EXPECT_EQ(made.samples[0].family, "kernel");
  EXPECT_EQ(made.samples[0].op, "gelu_forward");
  EXPECT_EQ(made.samples[0].bytes, 2 * 2 * 32);
  EXPECT_DOUBLE_EQ(made.samples[0].median_s, 5e-6);
  EXPECT_EQ(made.unused.at("memory-bound kernels without shapes"), 1);
  EXPECT_EQ(made.unused.at("memory-bound kernels of operators whose traffic is not counted"), 1);
  EXPECT_EQ(made.unused.at("copies that leave the GPU's memory"), 1);
}

// Two ranks meet in an all-reduce of 2,000 bytes; one came 30 us early.
TEST(KinetoSamples, TheLastRankToComeTellsWhatACollectiveCosts) {
  TraceText early, late;
  early.collective("AllReduce", collective_arguments("allreduce", 1000, 1000), 10, 37);
  late.collective("AllReduce", collective_arguments("allreduce", 1000, 1000), 40, 7);
  Diagnostics diagnostics;
  const KinetoSamples alone = kineto_samples({measured(early)}, 0, diagnostics);
  ASSERT_THAT(alone.samples, SizeIs(1));
  EXPECT_DOUBLE_EQ(alone.samples[0].median_s, 37e-6);
  EXPECT_EQ(alone.samples[0].shape.at("bytes"), 2000);
  EXPECT_EQ(alone.samples[0].tags.at("waiting"), "for the slowest rank included");
  const KinetoSamples both = kineto_samples({measured(early), measured(late, 1)}, 0, diagnostics);
  ASSERT_THAT(both.samples, SizeIs(1));
  EXPECT_DOUBLE_EQ(both.samples[0].median_s, 7e-6);
  EXPECT_EQ(both.samples[0].repeats, 1);
  EXPECT_EQ(both.samples[0].tags.at("seen_ranks"), "2");
}

// Ranks 0 and 4 share a node of 8, and are on two nodes of 4. The trace lists two devices.
TEST(KinetoSamples, NodesAreCountedByTheRanksOfTheGroup) {
  TraceText text;
  text.collective("AllReduce", collective_arguments("allreduce", 1000, 1000, "[0, 4]"), 10, 7);
  Diagnostics diagnostics;
  const auto nodes = [&](int gpus) {
    return kineto_samples({measured(text)}, gpus, diagnostics).samples.at(0).shape.at("nodes");
  };
  EXPECT_EQ(nodes(8), 1);
  EXPECT_EQ(nodes(4), 2);
  EXPECT_EQ(nodes(0), 2);
}

TEST(KinetoSamples, WhatGivesNoSampleIsCounted) {
  TraceText text;
  text.kernel("aten::mm", "", "gemm", 1, 5);
  text.collective("AllReduce", "", 10, 7);
  text.collective("SendRecv", collective_arguments("recv", 1000, 1000), 20, 7);
  Diagnostics diagnostics;
  const KinetoSamples made = kineto_samples({measured(text)}, 0, diagnostics);
  EXPECT_THAT(made.samples, IsEmpty());
  EXPECT_EQ(made.unused.at("products without shapes"), 1);
  EXPECT_EQ(made.unused.at("communication without kind, size or ranks"), 1);
  EXPECT_EQ(made.unused.at("receives, which wait for the sender"), 1);
  EXPECT_TRUE(diagnostics.has_errors());  // nothing is left to import
}

TEST(KinetoSamples, OneRankGivenTwiceIsRefused) {
  TraceText text;
  text.kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 1, 5);
  Diagnostics diagnostics;
  EXPECT_THAT(kineto_samples({measured(text, 3), measured(text, 3)}, 0, diagnostics).samples, IsEmpty());
  ASSERT_THAT(diagnostics.items(), SizeIs(1));
  EXPECT_THAT(render(diagnostics.items()[0]), HasSubstr("t.json: error: is of rank 3, and so is t.json"));
}

TEST(KinetoSamples, TracesOfUnlikeDevicesAreRefused) {
  TraceText here, there;
  here.kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 1, 5);
  there.head(R"("deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}])");
  there.kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 1, 5);
  Diagnostics diagnostics;
  EXPECT_THAT(kineto_samples({measured(here), measured(there, 1)}, 0, diagnostics).samples, IsEmpty());
  EXPECT_THAT(render(diagnostics.sorted().front()), HasSubstr("NVIDIA A100-SXM4-80GB"));
}

}  // namespace
}  // namespace stagecraft
