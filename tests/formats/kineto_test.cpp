#include "formats/kineto.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "formats/kineto_events.hpp"
#include "formats/kineto_kernels.hpp"
#include "tests/formats/kineto_traces.hpp"

namespace stagecraft {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

KinetoTrace read_good(const std::string& text) {
  Diagnostics diagnostics;
  std::optional<KinetoTrace> trace = read_text(text, diagnostics);
  EXPECT_THAT(diagnostics.items(), IsEmpty());
  return trace.value_or(KinetoTrace{});
}

// The message of what is refused, with its line.
std::string refusal(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_text(text, diagnostics).has_value());
  return diagnostics.items().empty() ? "" : render(diagnostics.sorted().front());
}

TEST(Kineto, MicrosecondsAreExactToTheNanosecond) {
  EXPECT_EQ(detail::microseconds("12"), microseconds(12));
  EXPECT_EQ(detail::microseconds("4458676416788.066"), nanoseconds(4458676416788066));
  EXPECT_EQ(detail::microseconds("1712867402348256"), microseconds(1712867402348256));
  EXPECT_EQ(detail::microseconds("0.0004"), nanoseconds(0));
  EXPECT_EQ(detail::microseconds("0.0005"), nanoseconds(1));
  EXPECT_EQ(detail::microseconds("1.5e3"), microseconds(1500));
  EXPECT_EQ(detail::microseconds("-2.5"), nanoseconds(-2500));
  EXPECT_EQ(detail::microseconds("-1.5E-1"), nanoseconds(-150));
  EXPECT_EQ(detail::microseconds("1e300"), std::nullopt);
  EXPECT_EQ(detail::microseconds("1e400"), std::nullopt);
  EXPECT_EQ(detail::microseconds("99999999999999999999"), std::nullopt);
}

TEST(Kineto, AKernelIsTiedToItsOperatorAndStep) {
  const KinetoTrace trace = read_good(
      TraceText().step(3, 100, 50).kernel("aten::mm", product_arguments(8, 4, 2), "gemm_tn", 110, 5).str());
  ASSERT_THAT(trace.kernels, SizeIs(1));
  const KinetoKernel& kernel = trace.kernels.front();
  EXPECT_EQ(trace.name_of(kernel), "gemm_tn");
  EXPECT_EQ(kernel.start, microseconds(10));  // after the first slice that is kept
  EXPECT_EQ(kernel.length, microseconds(5));
  ASSERT_EQ(kernel.op, 0);
  EXPECT_EQ(trace.ops[0].name, "aten::mm");
  ASSERT_EQ(kernel.step, 0);
  EXPECT_EQ(trace.steps[0].number, 3);
  EXPECT_EQ(trace.rank, 0);
  EXPECT_EQ(trace.world_size, 4);
  EXPECT_EQ(trace.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(trace.nccl_version, "2.21.5");
  EXPECT_TRUE(trace.has_shapes);
}

// The host launches at 140, in step 3; the device comes to it at 160, in step 4.
TEST(Kineto, AKernelBelongsToTheStepThatLaunchedIt) {
  const KinetoTrace trace = read_good(
      TraceText()
          .step(3, 100, 50)
          .step(4, 150, 50)
          .raw(
              R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": 140, "dur": 1, "args": {"correlation": 5}})")
          .raw(
              R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 160, "dur": 1, "args": {"correlation": 5}})")
          .str());
  ASSERT_THAT(trace.kernels, SizeIs(1));
  EXPECT_EQ(trace.steps[static_cast<std::size_t>(trace.kernels[0].step)].number, 3);
}

// Before PyTorch 1.12 an external id could be the correlation, which an operator elsewhere has by chance.
TEST(Kineto, AnOperatorWhoseThreadWasElsewhereIsNotBelieved) {
  const KinetoTrace trace = read_good(
      TraceText()
          .raw(
              R"({"ph": "X", "cat": "cpu_op", "name": "aten::zeros", "tid": 1, "ts": 10, "dur": 2, "args": {"External id": 7}})")
          .raw(
              R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": 50, "dur": 1, "args": {"correlation": 7, "External id": 7}})")
          .raw(
              R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 60, "dur": 1, "args": {"correlation": 7, "External id": 7}})")
          .str());
  ASSERT_THAT(trace.kernels, SizeIs(1));
  EXPECT_EQ(trace.kernels[0].op, -1);
}

// Σ of kernel durations and counts by Python's json module on the same files.
TEST(Kineto, TracesOfRealRunsAddUp) {
  Diagnostics diagnostics;
  std::ifstream in(STAGECRAFT_SOURCE_DIR "/tests/data/kineto/hta_nccl_data_excerpt.json");
  const std::optional<KinetoTrace> trace = read_kineto(in, "excerpt", diagnostics);
  ASSERT_TRUE(trace);
  Duration sum{};
  int collectives = 0;
  for (const KinetoKernel& kernel : trace->kernels) {
    sum += kernel.length;
    collectives += work_kind(*trace, kernel) == WorkKind::kCommunication ? 1 : 0;
  }
  EXPECT_THAT(trace->kernels, SizeIs(24));
  EXPECT_EQ(sum, nanoseconds(19890422));
  EXPECT_EQ(collectives, 12);
  EXPECT_THAT(trace->steps, SizeIs(3));
  EXPECT_EQ(trace->rank, 0);
  EXPECT_EQ(trace->world_size, 2);
  EXPECT_EQ(trace->nccl_version, "2.17.1");
  EXPECT_EQ(trace->visible_devices, 8);
  EXPECT_EQ(trace->date.substr(0, 10), "2024-05-23");
  EXPECT_FALSE(trace->has_shapes);
}

TEST(Kineto, TheFirstStepIsLeftOutUnlessItIsAskedFor) {
  TraceText text;
  for (const int step : {4, 5, 6})
    text.step(step, step * 100, 100).kernel("aten::mm", "", "gemm", step * 100 + 10, 5);
  KinetoTrace trace = read_good(text.str());
  Diagnostics diagnostics;
  EXPECT_THAT(measured_steps(trace, {}, "t", diagnostics).value(), ElementsAre(1, 2));
  EXPECT_THAT(measured_steps(trace, {4, 6}, "t", diagnostics).value(), ElementsAre(0, 2));
  EXPECT_THAT(diagnostics.items(), IsEmpty());
  EXPECT_EQ(measured_steps(trace, {7}, "t", diagnostics), std::nullopt);
  EXPECT_THAT(render(diagnostics.sorted().front()), HasSubstr("has no kernels of ProfilerStep#7"));
}

TEST(Kineto, ATraceWithoutStepsIsOneStepAndSaysSo) {
  KinetoTrace trace = read_good(TraceText().kernel("aten::mm", "", "gemm", 10, 5).str());
  Diagnostics diagnostics;
  EXPECT_THAT(measured_steps(trace, {}, "t", diagnostics).value(), ElementsAre(0));
  EXPECT_EQ(trace.steps[0].length, microseconds(5));
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_THAT(diagnostics.items(), SizeIs(1));
}

TEST(Kineto, WhatIsNoTraceIsRefusedWithItsLine) {
  EXPECT_THAT(refusal("{\"traceEvents\": [\n{\"ph\": "), HasSubstr("t.json:2: error: ends in the middle"));
  EXPECT_THAT(refusal("{\"traceEvents\": [\n{]}"), HasSubstr("t.json:2: error: is no JSON from here on"));
  EXPECT_THAT(refusal("[]"), HasSubstr("is a list"));
  EXPECT_THAT(refusal("{\"a\": 1}"), HasSubstr("has no traceEvents"));
  EXPECT_THAT(refusal("{\"traceEvents\": {}}"), HasSubstr("traceEvents is no list"));
  EXPECT_THAT(refusal("{\"traceEvents\": [\n\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\"}]}"),
              HasSubstr("t.json:3: error: the kernel 'k' has no time"));
  EXPECT_THAT(refusal(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -1}]})"),
              HasSubstr("has no time that could be read"));
  EXPECT_THAT(refusal(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "1"}]})"),
              HasSubstr("has no time that could be read"));
  EXPECT_THAT(refusal(R"({"traceEvents": [{"ph": "B", "cat": "kernel", "name": "k", "ts": 1}]})"),
              HasSubstr("is no complete slice"));
  EXPECT_THAT(refusal("{\"traceEvents\": " + std::string(100, '[')), HasSubstr("nested deeper than 64"));
}

TEST(Kineto, AMillionWrongSlicesAreTenMessages) {
  TraceText text;
  for (int i = 0; i < 50; ++i) text.raw(R"({"ph": "X", "cat": "kernel", "name": "k"})");
  Diagnostics diagnostics;
  EXPECT_FALSE(read_text(text.str(), diagnostics));
  EXPECT_THAT(diagnostics.items(), SizeIs(11));
  EXPECT_EQ(diagnostics.items().back().message, "40 more of these");
}

TEST(Kineto, ASliceWithoutDurationIsAnInstant) {
  Diagnostics diagnostics;
  const auto trace =
      read_text(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1}]})", diagnostics);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->kernels.at(0).length, nanoseconds(0));
  EXPECT_THAT(diagnostics.items(), SizeIs(1));
}

TEST(Kineto, AGroupOfManyRanksIsFoundInTheHead) {
  const KinetoTrace trace = read_good(
      TraceText()
          .head(
              R"("distributedInfo": {"rank": 0, "pg_config": [{"pg_name": "1", "pg_desc": "x", "ranks": [0, 2, 4]}]})")
          .collective("AllReduce", collective_arguments("allreduce", 8, 8, "[0, ..., 4]"), 1, 1)
          .str());
  EXPECT_THAT(trace.collectives.at(0).ranks, ElementsAre(0, 2, 4));
}

WorkKind kind_of(const std::string& op, const std::string& kernel) {
  const KinetoTrace trace = read_good(TraceText().kernel(op, "", kernel, 1, 1).str());
  return work_kind(trace, trace.kernels.at(0));
}

TEST(KinetoKernels, AreWhatTheirNamesAndOperatorsSay) {
  EXPECT_EQ(kind_of("aten::mm", "ampere_bf16_s16816gemm_bf16_128x256_tn"), WorkKind::kProduct);
  EXPECT_EQ(kind_of("_Linear", "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"), WorkKind::kProduct);
  EXPECT_EQ(kind_of("aten::mm", "void cublasLt::splitKreduce_kernel<32, 16>"), WorkKind::kProduct);
  EXPECT_EQ(kind_of("FlashAttnFunc", "void cutlass::device_kernel<flash::enable_sm90>"),
            WorkKind::kAttention);
  EXPECT_EQ(kind_of("x", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma"), WorkKind::kAttention);
  EXPECT_EQ(kind_of("aten::_log_softmax", "void (anonymous namespace)::cunn_SoftMaxForward<4>"),
            WorkKind::kLoss);
  EXPECT_EQ(kind_of("aten::_softmax", "void (anonymous namespace)::cunn_SoftMaxForward<4>"),
            WorkKind::kMemory);
  EXPECT_EQ(kind_of("SoftmaxCrossEntropyLoss", "void cunn_SoftMaxXEntropyForward<4, float>"),
            WorkKind::kLoss);
  EXPECT_EQ(kind_of("FusedAdam", "void multi_tensor_apply_kernel<Adam>"), WorkKind::kOptimizer);
  EXPECT_EQ(kind_of("aten::mul", "void at::native::vectorized_elementwise_kernel<4>"), WorkKind::kMemory);
  EXPECT_EQ(kind_of("x", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), WorkKind::kCommunication);
}

TEST(KinetoKernels, WhatTheOptimizerLaunchesIsItsOwn) {
  const KinetoTrace trace = read_good(
      TraceText()
          .raw(
              R"({"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#AdamW.step", "tid": 1, "ts": 5, "dur": 10})")
          .kernel("aten::mul", "", "vectorized_elementwise_kernel", 6, 1)
          .kernel("aten::mul", "", "vectorized_elementwise_kernel", 20, 1)
          .str());
  EXPECT_EQ(work_kind(trace, trace.kernels.at(0)), WorkKind::kOptimizer);
  EXPECT_EQ(work_kind(trace, trace.kernels.at(1)), WorkKind::kMemory);
}

std::optional<KinetoProduct> product(const std::string& op, const std::string& arguments,
                                     const std::string& kernel = "gemm") {
  const KinetoTrace trace = read_good(TraceText().kernel(op, arguments, kernel, 1, 1).str());
  return product_of(trace, trace.kernels.at(0));
}

// A linear layer of T = 8 tokens, 2 inputs and 4 outputs as autograd runs it: Y = X W', dX = dY W, dW = dY'
// X.
TEST(KinetoKernels, TheThreeProductsOfALinearLayerHaveTheirLayouts) {
  const auto with_strides = [](const std::string& dims, const std::string& strides) {
    return fmt::format(
        R"("Input Dims": {}, "Input Strides": {}, "Input type": ["c10::BFloat16", "c10::BFloat16"])", dims,
        strides);
  };
  EXPECT_EQ(product("aten::mm", with_strides("[[8, 2], [2, 4]]", "[[2, 1], [1, 2]]")),
            (KinetoProduct{.m = 8, .n = 4, .k = 2, .batch = 1, .layout = GemmLayout::kTN, .dtype = "bf16"}));
  EXPECT_EQ(product("aten::mm", with_strides("[[8, 4], [4, 2]]", "[[4, 1], [2, 1]]")),
            (KinetoProduct{.m = 8, .n = 2, .k = 4, .batch = 1, .layout = GemmLayout::kNN, .dtype = "bf16"}));
  EXPECT_EQ(product("aten::mm", with_strides("[[4, 8], [8, 2]]", "[[1, 4], [2, 1]]")),
            (KinetoProduct{.m = 4, .n = 2, .k = 8, .batch = 1, .layout = GemmLayout::kNT, .dtype = "bf16"}));
}

TEST(KinetoKernels, ShapesOfAllMatrixOperatorsAreRead) {
  const std::string types = R"(, "Input type": ["c10::Half", "c10::Half", "c10::Half"])";
  const auto of = [&](const std::string& op, const std::string& dims) {
    const auto read = product(op, R"("Input Dims": )" + dims + types);
    return read ? std::vector<std::int64_t>{read->m, read->n, read->k, read->batch}
                : std::vector<std::int64_t>{};
  };
  EXPECT_THAT(of("aten::mm", "[[8, 2], [2, 4]]"), ElementsAre(8, 4, 2, 1));
  EXPECT_THAT(of("aten::addmm", "[[4], [8, 2], [2, 4]]"), ElementsAre(8, 4, 2, 1));
  EXPECT_THAT(of("aten::bmm", "[[3, 8, 2], [3, 2, 4]]"), ElementsAre(8, 4, 2, 3));
  EXPECT_THAT(of("aten::linear", "[[2, 4, 2], [4, 2]]"), ElementsAre(8, 4, 2, 1));
  EXPECT_THAT(of("aten::mm", "[[8, 2], [3, 4]]"), IsEmpty());  // no product
  EXPECT_THAT(of("aten::mm", "[[8, 2]]"), IsEmpty());
  EXPECT_THAT(of("aten::mul", "[[8, 2], [2, 4]]"), IsEmpty());
}

TEST(KinetoKernels, TypesAreThoseOfSamples) {
  const auto type = [](const std::string& types, const std::string& kernel) {
    return product("aten::mm", R"("Input Dims": [[8, 2], [2, 4]], "Input type": )" + types, kernel)->dtype;
  };
  EXPECT_EQ(type(R"(["float", "float"])", "ampere_sgemm_128x64_nn"), "fp32");
  EXPECT_EQ(type(R"(["float", "float"])", "cutlass_80_tensorop_s1688gemm_256x64_nn"), "tf32");
  EXPECT_EQ(type(R"(["c10::Float8_e4m3fn", "c10::Float8_e4m3fn"])", "gemm"), "e4m3");
  EXPECT_EQ(type(R"(["c10::Float8_e5m2", "c10::Float8_e4m3fn"])", "gemm"), "e5m2");
}

TEST(KinetoKernels, SizesOfCollectivesAreThoseOfNcclTests) {
  const auto traffic = [](const std::string& name, std::int64_t in, std::int64_t out) {
    const KinetoTrace trace =
        read_good(TraceText().collective("X", collective_arguments(name, in, out), 1, 1).str());
    return traffic_of(trace, trace.kernels.at(0));
  };
  EXPECT_EQ(traffic("allreduce", 100, 100).size, Bytes(200));
  EXPECT_EQ(traffic("_allgather_base", 100, 200).size, Bytes(400));
  EXPECT_EQ(traffic("_reduce_scatter_base", 200, 100).size, Bytes(400));
  EXPECT_EQ(traffic("all_to_all", 100, 100).kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(traffic("recv", 100, 100).kind, CollectiveKind::kSendReceive);
  EXPECT_EQ(traffic("barrier", 1, 1).kind, std::nullopt);
}

}  // namespace
}  // namespace stagecraft
