#include "formats/kineto_operators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/kineto_attention.hpp"
#include "formats/kineto_kernels.hpp"
#include "formats/kineto_memory_work.hpp"
#include "tests/formats/kineto_traces.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Shape = std::map<std::string, std::int64_t>;

constexpr const char* kBf16x3 = R"("Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])";

KinetoTrace one(const std::string& op, const std::string& arguments, const std::string& kernel = "k") {
  Diagnostics diagnostics;
  KinetoTrace trace = read_text(TraceText().kernel(op, arguments, kernel, 1, 5).str(), diagnostics).value();
  EXPECT_THAT(diagnostics.items(), IsEmpty());
  return trace;
}

KinetoMemoryWork work(const std::string& op, const std::string& arguments, const std::string& kernel = "k") {
  const KinetoTrace trace = one(op, arguments, kernel);
  const MemoryWorkOrReason read = memory_work_of(trace, trace.kernels.at(0));
  const auto* found = std::get_if<KinetoMemoryWork>(&read);
  EXPECT_NE(found, nullptr) << std::get<std::string>(read);
  return found == nullptr ? KinetoMemoryWork{} : *found;
}

std::string why_not(const std::string& op, const std::string& arguments, const std::string& kernel = "k") {
  const KinetoTrace trace = one(op, arguments, kernel);
  const MemoryWorkOrReason read = memory_work_of(trace, trace.kernels.at(0));
  return std::holds_alternative<std::string>(read) ? std::get<std::string>(read) : "";
}

// 6 rows of 8: in bf16 96 bytes a tensor; a layer norm keeps two fp32 a row.
TEST(KinetoOperators, ANormReadsAndWritesItsRowsOnce) {
  const KinetoMemoryWork forward = work(
      "aten::native_layer_norm",
      R"("Input Dims": [[2, 3, 8], [], [8], [8], []], "Input type": ["c10::BFloat16", "ScalarList", "float", "float", "Scalar"])");
  EXPECT_EQ(forward.op, "layernorm_forward");
  EXPECT_EQ(forward.shape, (Shape{{"tokens", 6}, {"hidden", 8}}));
  EXPECT_EQ(forward.dtype, "bf16");
  EXPECT_EQ(forward.bytes, 2 * 96 + 6 * 8);
  const KinetoMemoryWork backward =
      work("aten::_fused_rms_norm_backward",
           R"("Input Dims": [[6, 8], [6, 8]], "Input type": ["float", "float"])");
  EXPECT_EQ(backward.op, "rmsnorm_backward");
  EXPECT_EQ(backward.bytes, 3 * 192 + 6 * 4);
}

TEST(KinetoOperators, SoftmaxIsOverAsManyKeysAsQueries) {
  const std::string square =
      R"("Input Dims": [[2, 3, 4, 4], [], []], "Input type": ["c10::Half", "Scalar", "Scalar"])";
  EXPECT_EQ(work("aten::_softmax", square).shape, (Shape{{"heads", 6}, {"sequence", 4}}));
  EXPECT_EQ(work("aten::_softmax", square).bytes, 2 * 2 * 96);
  EXPECT_THAT(why_not("aten::_softmax", R"("Input Dims": [[2, 3, 4, 5]], "Input type": ["c10::Half"])"),
              HasSubstr("unequal"));
  EXPECT_THAT(why_not("aten::_softmax", square, "void softmax_warp_forward<c10::Half, float, float, 2>"),
              HasSubstr("another type"));
}

// Dropout: read, write and a byte of mask. A lookup: so many rows read and written.
TEST(KinetoOperators, MasksAndLookupsAreCounted) {
  EXPECT_EQ(work("aten::native_dropout", R"("Input Dims": [[4, 8], [], []], "Input type": ["c10::BFloat16"])")
                .bytes,
            32 * 5);
  const KinetoMemoryWork lookup =
      work("aten::index_select",
           R"("Input Dims": [[1000, 8], [], [5]], "Input type": ["float", "Scalar", "long int"])");
  EXPECT_EQ(lookup.op, "embedding_forward");
  EXPECT_EQ(lookup.shape, (Shape{{"tokens", 5}, {"hidden", 8}}));
  EXPECT_EQ(lookup.bytes, 2 * 5 * 8 * 4);
}

// A bias of 8 is spread over 4 rows; the result is as wide as the widest.
TEST(KinetoOperators, TensorsOfASumAreReadAtTheirOwnSizeAndType) {
  const KinetoMemoryWork sum = work(
      "aten::add_", R"("Input Dims": [[4, 8], [8], []], "Input type": ["float", "c10::BFloat16", "Scalar"])");
  EXPECT_EQ(sum.op, "add");
  EXPECT_EQ(sum.shape, (Shape{{"elements", 32}}));
  EXPECT_EQ(sum.bytes, 32 * 4 + 8 * 2 + 32 * 4);
  EXPECT_EQ(
      why_not("aten::add", R"("Input Dims": [[4, 8], [3, 7]], "Input type": ["float", "float"])").empty(),
      false);
}

TEST(KinetoOperators, ACastReadsOneTypeAndWritesAnother) {
  const KinetoMemoryWork cast =
      work("aten::copy_",
           R"("Input Dims": [[4, 8], [4, 8], []], "Input type": ["c10::BFloat16", "float", "Scalar"])");
  EXPECT_EQ(cast.op, "cast");
  EXPECT_EQ(cast.dtype, "fp32 to bf16");
  EXPECT_EQ(cast.bytes, 32 * 6);
}

// Lists of 12 elements: Adam touches seven of fp32; a multiplication by a number reads and writes one.
TEST(KinetoOperators, ListsOfTensorsAreSummed) {
  const std::string lists =
      R"("Input Dims": [[[2, 4], [4]], [[2, 4], [4]], []], "Input type": ["TensorList", "TensorList", "Scalar"])";
  const std::string adam =
      "void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4, "
      "(ADAM_MODE)1, false>, float const*>";
  EXPECT_EQ(work("aten::_fused_adamw_", lists, adam).bytes, 7 * 4 * 12);
  EXPECT_EQ(work("aten::_fused_adamw_", lists, adam).op, "adam");
  const KinetoMemoryWork scaled = work(
      "aten::_foreach_mul_", lists,
      "void multi_tensor_apply_kernel<TensorListMetadata<1>, BinaryOpScalarFunctor<c10::BFloat16, 1, 1, 0>>");
  EXPECT_EQ(scaled.op, "foreach_mul");
  EXPECT_EQ(scaled.bytes, 2 * 2 * 12);
  for (const int size : {2, 16}) {
    const std::string join = fmt::format(
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<{}u>, unsigned int, 2, 64, "
        "64>",
        size);
    EXPECT_EQ(work("aten::cat", lists, join).bytes, 2 * size * 12);
  }
  // PyTorch writes nothing of a list of more than 30.
  EXPECT_THAT(why_not("aten::_fused_adamw_", R"("Input Dims": [[], []], "Input type": ["TensorList"])", adam),
              HasSubstr("30 tensors"));
}

TEST(KinetoOperators, WhatIsNotRecordedIsNotGuessed) {
  EXPECT_THAT(why_not("aten::gelu", ""), HasSubstr("without shapes"));
  EXPECT_THAT(why_not("aten::gelu", R"("Input Dims": [[4, 8]], "Input type": ["c10::complex"])"),
              HasSubstr("types"));
  EXPECT_THAT(why_not("aten::sum", R"("Input Dims": [[4, 8]], "Input type": ["float"])"),
              HasSubstr("not counted"));
}

std::string attention_arguments(const std::string& dims, const std::string& values) {
  return fmt::format(R"("Input Dims": {}, {}, "Concrete Inputs": {})", dims, kBf16x3, values);
}

KinetoAttention attention(const std::string& op, const std::string& arguments, const std::string& kernel) {
  const KinetoTrace trace = one(op, arguments, kernel);
  EXPECT_EQ(work_kind(trace, trace.kernels.at(0)), WorkKind::kAttention);
  const AttentionOrReason read = attention_of(trace, trace.kernels.at(0));
  const auto* found = std::get_if<KinetoAttention>(&read);
  EXPECT_NE(found, nullptr) << std::get<std::string>(read);
  return found == nullptr ? KinetoAttention{} : *found;
}

// Two samples of 16 tokens, four heads of 8 on two of keys: one operator counts lengths first, the other
// heads.
TEST(KinetoOperators, ExtentsOfAttentionStandWhereItsOperatorHasThem) {
  const KinetoAttention fa2 =
      attention("aten::_flash_attention_forward",
                attention_arguments("[[2, 16, 4, 8], [2, 16, 2, 8], [2, 16, 2, 8]]",
                                    R"(["", "", "", "", "", "16", "16", "0.", "True", "False", ""])"),
                "pytorch_flash::flash_fwd_kernel");
  EXPECT_EQ(fa2, (KinetoAttention{.batch = 2,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .queries = 16,
                                  .keys = 16,
                                  .head_size = 8,
                                  .value_size = 8,
                                  .causal = true,
                                  .implementation = "fa2",
                                  .dtype = "bf16"}));
  const KinetoAttention cudnn = attention("aten::_scaled_dot_product_cudnn_attention",
                                          attention_arguments("[[2, 4, 16, 8], [2, 2, 16, 8], [2, 2, 16, 8]]",
                                                              R"(["", "", "", "", "True", "0.", "False"])"),
                                          "cudnn_generated_fort_native_sdpa_sm90_flash_fprop");
  EXPECT_EQ(cudnn.implementation, "cudnn");
  EXPECT_EQ(cudnn.heads, 4);
  EXPECT_EQ(cudnn.queries, 16);
  EXPECT_FALSE(cudnn.causal);
}

// Extents that no memory holds are not recorded ones.
TEST(KinetoOperators, ExtentsBeyondAnyMemoryAreNone) {
  const std::string vast = "[4194304, 2097152, 16, 1]";
  const KinetoTrace trace = one("aten::_flash_attention_forward",
                                attention_arguments(fmt::format("[{0}, {0}, {0}]", vast),
                                                    R"(["", "", "", "", "", "16", "16", "0.", "True"])"),
                                "flash_fwd_kernel");
  EXPECT_EQ(operator_work(trace, trace.kernels.at(0)).elements, 0);
  EXPECT_THAT(
      why_not(
          "aten::index_select",
          R"("Input Dims": [[8, 1125899906842624], [], [1125899906842624]], "Input type": ["float", "Scalar", "long int"])"),
      HasSubstr("without shapes"));
}

TEST(KinetoOperators, TheMaskIsTheCallsElseTheKernels) {
  const std::string dims =
      R"("Input Dims": [[2, 16, 4, 8], [2, 16, 4, 8], [2, 16, 4, 8]], )" + std::string(kBf16x3);
  EXPECT_TRUE(
      attention("aten::_flash_attention_forward", dims,
                "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, traits<128>>, false, true, false>")
          .causal);
  EXPECT_FALSE(
      attention("aten::_flash_attention_forward", dims,
                "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, traits<128>>, true, false, false>")
          .causal);
  const KinetoTrace silent = one("aten::_flash_attention_forward", dims, "flash_fwd_kernel");
  EXPECT_THAT(std::get<std::string>(attention_of(silent, silent.kernels.at(0))), HasSubstr("mask"));
  const KinetoTrace packed = one("aten::_flash_attention_forward",
                                 attention_arguments("[[32, 4, 8], [32, 4, 8], [32, 4, 8]]",
                                                     R"(["", "", "", "", "", "16", "16", "0.", "True"])"),
                                 "flash_fwd_kernel");
  EXPECT_THAT(std::get<std::string>(attention_of(packed, packed.kernels.at(0))), HasSubstr("packed"));
}

TEST(KinetoOperators, AnOperatorSaysItsRoleElseItsKernelDoes) {
  const auto said = [](const std::string& op, const std::string& kernel) {
    const KinetoTrace trace = one(op, "", kernel);
    return operator_work(trace, trace.kernels.at(0));
  };
  EXPECT_EQ(said("aten::native_layer_norm_backward", "k").role, OperatorRole::kNorm);
  EXPECT_TRUE(said("aten::native_layer_norm_backward", "k").backward);
  EXPECT_EQ(
      said("_LayerNormLinear", "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<>").role,
      OperatorRole::kNorm);
  EXPECT_TRUE(said("X", "ln_bwd_kernel").backward);
  EXPECT_EQ(said("X", "some_kernel").role, OperatorRole::kNone);
}

// An addition says nothing of its pass; the thread that it ran on does.
TEST(KinetoOperators, OperatorsOnThreadsOfAutogradAreOfTheBackward) {
  TraceText text;
  text.raw(
      R"({"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddBackward0", "pid": 1, "tid": 1, "ts": 0, "dur": 9, "args": {"External id": 900}})");
  text.kernel("aten::add", R"("Input Dims": [[4, 8], [4, 8]], "Input type": ["float", "float"])", "k", 1, 5);
  Diagnostics diagnostics;
  const KinetoTrace trace = read_text(text.str(), diagnostics).value();
  EXPECT_TRUE(operator_work(trace, trace.kernels.at(0)).backward);
  EXPECT_EQ(operator_work(trace, trace.kernels.at(0)).elements, 32);
  const KinetoTrace forward = one("aten::add", "");
  EXPECT_FALSE(operator_work(forward, forward.kernels.at(0)).backward);
}

}  // namespace
}  // namespace stagecraft
