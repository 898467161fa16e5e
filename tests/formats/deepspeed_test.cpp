#include "formats/deepspeed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "tests/file_content.hpp"
#include "tests/formats/import_probe.hpp"

namespace stagecraft {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string sample(const std::string& name) {
  return content_of(STAGECRAFT_SOURCE_DIR "/tests/data/" + name);
}

Import import_text(const std::string& text, const ImportRequest& request = {},
                   const std::string& name = "ds.json") {
  Import import;
  Diagnostics diagnostics;
  import.fragment = import_deepspeed(text, name, request, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.sorted()) import.messages.push_back(render(diagnostic));
  return import;
}

TEST(DeepSpeedImport, ReadsEveryZeroStage) {
  for (const std::string stage : {"0", "1", "2", "3"}) {
    SCOPED_TRACE(stage);
    const Import import = import_text(sample("deepspeed/ds_config_fp16_z" + stage + ".json"));
    EXPECT_EQ(import.at("parallelism.zero_stage"), stage);
    EXPECT_EQ(import.at("training.precision"), "fp16");
    EXPECT_EQ(import.at("training.micro_batch_size"), "absent");
    ASSERT_TRUE(import.fragment.has_value());
    EXPECT_THAT(import.fragment->missing,
                Contains("micro_batch_size: 1   # under training: \"auto\" is filled in by the trainer"));
    EXPECT_THAT(import.messages, IsEmpty());
  }
}

// "auto" is of the trainer of Transformers; without it the layers may be Megatron-LM's.
TEST(DeepSpeedImport, NamesItsSoftwareWhereTheTrainerIsKnown) {
  const Import trainer = import_text(
      R"({"bf16": {"enabled": true}, "train_batch_size": "auto", "zero_optimization": {"stage": 2}})");
  EXPECT_EQ(trainer.at("options.software"), "deepspeed");
  EXPECT_EQ(trainer.at("options.memory.bucket_copies"), "true");
  const Import any = import_text(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})");
  EXPECT_EQ(any.at("options"), "absent");
  ASSERT_TRUE(any.fragment.has_value());
  EXPECT_THAT(any.fragment->missing, Contains(HasSubstr("software: deepspeed   # under options")));
  const Import open = import_text(R"({"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}})");
  ASSERT_TRUE(open.fragment.has_value());
  EXPECT_THAT(open.fragment->missing, Contains(HasSubstr("memory: {bucket_copies: true}   # under options")));
  const Import alone = import_text(R"({"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2},
      "train_batch_size": 8, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1})");
  ASSERT_TRUE(alone.fragment.has_value());
  EXPECT_THAT(alone.fragment->missing, testing::Not(Contains(HasSubstr("bucket_copies"))));
}

TEST(DeepSpeedImport, ReadsTheOldSwitchesOfOffloading) {
  const Import old = import_text(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
    "cpu_offload": true, "cpu_offload_params": true, "cpu_offload_use_pin_memory": true}})");
  EXPECT_EQ(old.at("offload.optimizer"), "1");
  EXPECT_EQ(old.at("offload.weights"), "1");
  EXPECT_THAT(old.messages, IsEmpty());
  EXPECT_EQ(import_text(R"({"zero_optimization": {"stage": 2, "cpu_offload": false}})").at("offload"),
            "absent");
  EXPECT_THAT(import_text(R"({"zero_optimization": {"stage": 2, "cpu_offload": true,
                              "offload_optimizer": {"device": "none"}}})")
                  .messages,
              Contains(HasSubstr("cpu_offload: and zero_optimization.offload_optimizer.device says none")));
}

TEST(DeepSpeedImport, RefusesATemplate) {
  const Import import = import_text(sample("deepspeed/deepcompile_ds_config.json.template"));
  EXPECT_THAT(import.messages, Contains(HasSubstr("ds.json:2: error: is a template, not a configuration")));
}

TEST(DeepSpeedImport, TakesOffloadOverlapAndBuckets) {
  const Import import = import_text(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
    "overlap_comm": false, "reduce_bucket_size": 2e8, "offload_optimizer": {"device": "cpu", "ratio": 0.5},
    "offload_param": {"device": "cpu"}}})");
  EXPECT_EQ(import.at("offload.optimizer"), "0.5");
  EXPECT_EQ(import.at("offload.weights"), "1");
  EXPECT_EQ(import.at("overlap.gradients"), "false");
  EXPECT_EQ(import.at("options.bucket_parameters"), "200000000");
  EXPECT_EQ(import.at("training.gradient_dtype"), "bf16");
}

// engine.py, allreduce_gradients: without ZeRO the gradients are reduced once the backward is done.
TEST(DeepSpeedImport, OverlapsNothingWithoutZero) {
  for (const std::string zero :
       {R"({"stage": 0})", R"({"stage": 0, "overlap_comm": true})", R"({"reduce_bucket_size": 1000})"}) {
    const Import import = import_text(R"({"zero_optimization": )" + zero + "}");
    EXPECT_EQ(import.at("overlap.gradients"), "false") << zero;
    EXPECT_EQ(import.at("overlap.parameters"), "absent") << zero;
    EXPECT_THAT(import.messages, IsEmpty()) << zero;
  }
}

std::string gradient_type(const std::string& settings) {
  return import_text("{" + settings + "}").at("training.gradient_dtype");
}

// DeepSpeed's get_data_types: bf16 without ZeRO accumulates in fp32.
TEST(DeepSpeedImport, AccumulatesBf16InFp32WhereZeroIsOff) {
  const std::string bf16 = R"("bf16": {"enabled": true})";
  EXPECT_EQ(gradient_type(bf16), "fp32");
  EXPECT_EQ(gradient_type(bf16 + R"(, "zero_optimization": {"stage": 0})"), "fp32");
  EXPECT_EQ(gradient_type(bf16 + R"(, "zero_optimization": {"stage": 1})"), "bf16");
  EXPECT_EQ(gradient_type(R"("fp16": {"enabled": true})"), "fp16");
}

TEST(DeepSpeedImport, KnowsTheWordsForATypeOfGradients) {
  const auto under = [](const std::string& type) {
    return R"("bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": ")" + type + "\"}";
  };
  for (const char* type : {"fp32", "float32", "float", "torch.float32"})
    EXPECT_EQ(gradient_type(under(type) + R"(, "zero_optimization": {"stage": 2})"), "fp32") << type;
  for (const char* type : {"bf16", "bfloat16", "torch.bfloat16"})
    EXPECT_EQ(gradient_type(under(type)), "bf16") << type;
  for (const char* type : {"banana", "int8"})
    EXPECT_THAT(
        import_text("{" + under(type) + "}").messages,
        testing::ElementsAre("ds.json:1:64: error: data_types.grad_accum_dtype: '" + std::string(type) +
                             "' is no type of gradients\n  hint: fp32, fp16 or bf16"));
}

TEST(DeepSpeedImport, ReadsMastersAndMomentsInTheTypeOfTheWeights) {
  const auto import = [](const std::string& section, const std::string& stage) {
    return import_text("{" + section + R"(, "zero_optimization": {"stage": )" + stage + "}}");
  };
  const std::string masters = R"("bf16": {"enabled": true, "bf16_master_weights_and_grads": true)";
  const Import both = import(masters + R"(, "bf16_optimizer_states": true})", "2");
  EXPECT_EQ(both.at("training.gradient_dtype"), "bf16");
  EXPECT_EQ(both.at("training.master_weights"), "false");
  EXPECT_EQ(both.at("training.moment_dtype"), "bf16");
  EXPECT_THAT(both.messages, testing::ElementsAre(
                                 "ds.json:1:61: warning: bf16.bf16_master_weights_and_grads: the weights are "
                                 "stepped themselves: ZeRO's copy of 2 bytes is left out"));
  EXPECT_THAT(both.fragment->ignored, IsEmpty());
  EXPECT_EQ(import(masters + "}", "2").at("training.moment_dtype"), "absent");
  const Import fp16 = import(R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true})", "1");
  EXPECT_EQ(fp16.at("training.master_weights"), "false");
  EXPECT_EQ(fp16.at("training.moment_dtype"), "absent");
  EXPECT_EQ(import(R"("bf16": {"enabled": true})", "2").at("training.master_weights"), "absent");
  EXPECT_THAT(import(masters + "}", "0").messages, Contains(HasSubstr("is for ZeRO, and ZeRO is off")));
  EXPECT_THAT(import(R"("bf16": {"enabled": true, "bf16_optimizer_states": true})", "1").messages,
              Contains(HasSubstr("error: bf16.bf16_optimizer_states: is for masters in bf16")));
}

TEST(DeepSpeedImport, WarnsOfUnknownSettingsInsideThePrecision) {
  const Import import = import_text(R"({"bf16": {"enabled": true, "check_grad_overflow": false, "wibble": 1},
    "fp16": {"loss_scale": 0, "hysteresis": 2}})");
  EXPECT_THAT(import.messages, testing::ElementsAre(HasSubstr("bf16.wibble: is not known here")));
  EXPECT_THAT(import.fragment->ignored,
              Contains("bf16.check_grad_overflow, fp16.loss_scale, fp16.hysteresis"));
}

// 1024 = 4 * 8 * 32.
TEST(DeepSpeedImport, ChecksThatTheBatchMultiplies) {
  const std::string batch = R"({"train_batch_size": 1024, "train_micro_batch_size_per_gpu": 4,
                                "gradient_accumulation_steps": 8})";
  EXPECT_EQ(import_text(batch).at("parallelism.data"), "32");
  EXPECT_EQ(import_text(batch, {.gpus = 32, .node = "dgx-h100"}).at("cluster.nodes"), "4");
  const Import wrong = import_text(batch, {.gpus = 64, .node = "dgx-h100"});
  EXPECT_THAT(wrong.messages, Contains("ds.json:1:22: error: train_batch_size: 1024 is not micro-batch 4 × "
                                       "accumulation 8 × 64 data ranks = 2048"));
}

TEST(DeepSpeedImport, DividesTheBatchOverAccumulationAndRanks) {
  const std::string batch = R"({"train_batch_size": 64, "gradient_accumulation_steps": 2})";
  const Import import = import_text(batch, {.gpus = 16, .node = "dgx-h100"});
  EXPECT_EQ(import.at("training.micro_batch_size"), "2");
  ASSERT_TRUE(import.fragment.has_value());
  EXPECT_THAT(to_yaml(*import.fragment),
              HasSubstr("micro_batch_size: 2  # train_batch_size / (accumulation × data ranks)"));
  EXPECT_THAT(import_text(batch, {.gpus = 24, .node = "dgx-h100"}).messages,
              Contains(HasSubstr("train_batch_size: 64 is no multiple of accumulation 2 × 24 data ranks")));
}

TEST(DeepSpeedImport, WarnsOfWhatItCannotModelOrDoesNotKnow) {
  const Import import = import_text(R"({"wibble": 1, "steps_per_print": 10, "optimizer": {"type": "Adam"},
    "zero_optimization": {"stage": 2, "zero_quantized_gradients": true, "contiguous_gradients": true}})");
  ASSERT_TRUE(import.fragment.has_value());
  EXPECT_EQ(import.messages.size(), 2u);
  EXPECT_THAT(import.messages, Contains(HasSubstr("wibble: is not known here, and not read")));
  EXPECT_THAT(import.messages, Contains(HasSubstr("zero_quantized_gradients: is not modelled: gradients are "
                                                  "reduced in 4 bit")));
  EXPECT_THAT(import.fragment->ignored, Contains("steps_per_print, zero_optimization.contiguous_gradients"));
}

TEST(DeepSpeedImport, WarnsOfOptimizersThatAreNoAdam) {
  for (const char* type : {"SGD", "Lamb", "OneBitAdam", "Muon"}) {
    const Import import =
        import_text(R"({"optimizer": {"type": ")" + std::string(type) + R"(", "params": {"lr": 1}}})");
    ASSERT_TRUE(import.fragment.has_value());
    EXPECT_THAT(import.messages,
                testing::ElementsAre("ds.json:1:24: warning: optimizer.type: '" + std::string(type) +
                                     "' is not modelled: Adam's states and step are counted"));
    EXPECT_THAT(import.fragment->ignored, testing::ElementsAre("optimizer.params"));
  }
  for (const char* type : {"Adam", "AdamW", "auto"})
    EXPECT_THAT(import_text(R"({"optimizer": {"type": ")" + std::string(type) + R"("}})").messages,
                IsEmpty());
}

TEST(DeepSpeedImport, RefusesSectionsThatAreNoObjects) {
  for (const std::string section : {"zero_optimization", "bf16", "optimizer"})
    for (const std::string value : {"true", "null"}) {
      const Import import = import_text("{\"" + section + "\": " + value + "}");
      EXPECT_FALSE(import.fragment.has_value());
      const std::string found = value == "null" ? "null" : "'true'";
      EXPECT_THAT(import.messages, testing::ElementsAre(HasSubstr("error: " + section + ": " + found +
                                                                  " stands where an object is required")));
    }
  EXPECT_EQ(import_text(R"({"zero_optimization": {"stage": 1, "offload_param": null}})")
                .at("parallelism.zero_stage"),
            "1");
}

TEST(DeepSpeedImport, RefusesNumbersAndFlagsInQuotes) {
  const Import import =
      import_text(R"({"train_batch_size": "8", "bf16": {"enabled": "true"}, "zero_optimization":
    {"stage": "two", "overlap_comm": " true", "reduce_bucket_size": "2e8",
     "offload_optimizer": {"device": "cpu", "ratio": "half"}}})");
  EXPECT_FALSE(import.fragment.has_value());
  for (const char* what :
       {"train_batch_size: a whole number", "bf16.enabled: true or false", "stage: a whole number",
        "overlap_comm: true or false", "bucket_size: a whole number", "ratio: a number between 0 and 1"})
    EXPECT_THAT(
        import.messages,
        Contains(AllOf(HasSubstr(what), HasSubstr("numbers, true and false are written without quotes"))));
}

// pydantic 2.13 on DeepSpeed's own fields takes all of these.
TEST(DeepSpeedImport, TakesWhatPydanticTakesInTheZeroSection) {
  const Import import = import_text(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": "3",
    "overlap_comm": "No", "reduce_scatter": 1, "reduce_bucket_size": "200000000",
    "offload_optimizer": {"device": "cpu", "ratio": "5e-1"}}})");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("parallelism.zero_stage"), "3");
  EXPECT_EQ(import.at("overlap.gradients"), "false");
  EXPECT_EQ(import.at("options.bucket_parameters"), "200000000");
  EXPECT_EQ(import.at("offload.optimizer"), "0.5");
}

TEST(NeoxImport, RefusesNumbersInQuotesEverywhere) {
  const Import import =
      import_text("{\"num_layers\": 4, \"zero_optimization\": {\"stage\": \"1\"}}", {}, "job.yml");
  EXPECT_THAT(import.messages, Contains(HasSubstr("zero_optimization.stage: a whole number belongs here")));
}

TEST(DeepSpeedImport, RefusesAKeyInTwoSpellings) {
  const Import import = import_text(R"({"zero_optimization": {"stage": 1},
 "zero-optimization": {"stage": 3}})");
  EXPECT_THAT(
      import.messages,
      testing::ElementsAre("ds.json:2:2: error: zero-optimization: is given twice, with dashes and with "
                           "underscores\n  note: ds.json:1:2: first given here\n  hint: keep one of the "
                           "two"));
}

TEST(DeepSpeedImport, RefusesOffloadingToDisks) {
  const Import import =
      import_text(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})");
  EXPECT_THAT(import.messages, Contains(HasSubstr("offloading to 'nvme' is not supported")));
}

TEST(DeepSpeedImport, RefusesWhatIsNoConfiguration) {
  for (const char* text : {"", "[1, 2]", "3", "{", "name: x"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(import_text(text).fragment.has_value());
  }
}

TEST(DeepSpeedImport, RefusesAFileWithoutAnyOfItsKeys) {
  for (const char* text : {"{}", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4096})"})
    EXPECT_THAT(import_text(text).messages,
                ElementsAre("ds.json: error: holds no configuration of DeepSpeed or GPT-NeoX"))
        << text;
  EXPECT_TRUE(import_text(R"({"steps_per_print": 10, "mine": 1})").fragment.has_value());
}

// System: GPT-NeoX-20B on 96 GPUs, tensor 2 x pipeline 4 x data 12, ZeRO 1; 50,257 tokens padded to 50,432 =
// 197 * 256. Expectations: 12 L h^2 + 13 L h + 2 V h + 2 h with L = 44, h = 6144, and 4 * 32 * 12 samples an
// iteration.
TEST(NeoxImport, ReadsTheConfigurationOf20B) {
  const Import import =
      import_text(sample("neox/20B.yml"), {.gpus = 96, .vocab = 50'257, .node = "dgx-a100-40gb"});
  EXPECT_EQ(import.at("model.layers"), "44");
  EXPECT_EQ(import.at("model.hidden"), "6144");
  EXPECT_EQ(import.at("model.heads"), "64");
  EXPECT_EQ(import.at("model.position"), "rope");
  EXPECT_EQ(import.at("model.tied_embeddings"), "false");
  EXPECT_EQ(import.at("model.dropout"), "false");
  EXPECT_EQ(import.at("parallelism.tensor"), "2");
  EXPECT_EQ(import.at("parallelism.pipeline"), "4");
  EXPECT_EQ(import.at("parallelism.data"), "12");
  EXPECT_EQ(import.at("parallelism.zero_stage"), "1");
  EXPECT_EQ(import.at("training.micro_batch_size"), "4");
  EXPECT_EQ(import.at("training.global_batch_size"), "1536");
  EXPECT_EQ(import.at("training.recompute"), "full");
  EXPECT_EQ(import.at("training.precision"), "fp16");
  EXPECT_EQ(import.at("options.software"), "megatron-deepspeed-2021");
  EXPECT_EQ(import.at("options.memory.bucket_copies"), "true");
  EXPECT_EQ(import.at("model.vocab"), "50432");
  EXPECT_EQ(parameters(import), 20'554'567'680);
  EXPECT_THAT(import.messages, testing::ElementsAre(HasSubstr("gpt_j_residual: is not modelled")));
}

// A pipeline size of 0 or 1 is no pipeline.
TEST(NeoxImport, TakesNoPipelineForOneStage) {
  const Import import =
      import_text(sample("neox/175B.yml"), {.gpus = 64, .vocab = 50'257, .node = "dgx-h100"});
  EXPECT_EQ(import.at("parallelism.pipeline"), "1");
  EXPECT_EQ(import.at("parallelism.data"), "64");
  EXPECT_EQ(import.at("training.global_batch_size"), "256");
  EXPECT_EQ(import.at("overlap.gradients"), "true");
  EXPECT_EQ(import_text(sample("neox/20B.yml"), {.gpus = 8, .vocab = 50'257}).at("options.memory"), "absent")
      << "one replica";
}

// GPT-NeoX accumulates one micro-batch where it is not told how many: 64 = 8 * 1 * 8.
TEST(NeoxImport, DividesTheBatchOverTheDataRanks) {
  const std::string model = R"({"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "seq_length":
    2048, "max_position_embeddings": 2048, "pos_emb": "rotary", "precision": "fp16", "train_batch_size": )";
  const ImportRequest request{.gpus = 8, .vocab = 50'257, .node = "dgx-h100"};
  const Import import = import_text(model + "64}", request);
  EXPECT_EQ(import.at("training.global_batch_size"), "64");
  EXPECT_EQ(import.at("training.micro_batch_size"), "8");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_THAT(import_text(model + "60}", request).messages,
              Contains(HasSubstr("train_batch_size: 60 is no multiple of accumulation 1 × 8 data ranks")));
}

// GPT-NeoX's configs/bf16_125M.yml in small, with other words for the precision.
Import import_precision(const std::string& words) {
  return import_text(R"({"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "seq_length": 2048,
    "max_position_embeddings": 2048, "pos_emb": "rotary", "train_micro_batch_size_per_gpu": 4)" +
                         words + "}",
                     {.gpus = 8, .vocab = 50'257, .node = "dgx-h100"});
}

TEST(NeoxImport, TakesThePrecisionOfAnyVersion) {
  struct Case {
    const char *words, *precision, *gradients;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"(, "precision": "bfloat16")", "bf16", "fp32"},
           {R"(, "precision": "bfloat16", "zero_optimization": {"stage": 1})", "bf16", "bf16"},
           {R"(, "precision": "bfloat16", "fp32_allreduce": True)", "bf16", "fp32"},
           {R"(, "precision": "fp16")", "fp16", "fp16"},
           {R"(, "precision": "fp32", "fp32_allreduce": True)", "fp32", "absent"},
           {R"(, "fp16": {"enabled": true, "type": "bfloat16"}, "fp32_allreduce": True)", "bf16", "fp32"},
           {R"(, "fp16": {"enabled": true}, "precision": "bfloat16")", "bf16", "fp32"},
           {R"(, "fp16": {"enabled": true}, "precision": "fp16", "fp32_allreduce": False)", "fp16", "fp16"},
           {R"(, "fp16": {"enabled": false})", "fp32", "absent"},
           {R"(, "fp16": {"loss_scale": 0})", "fp16", "fp16"},
           {R"(, "bf16": {"enabled": true})", "bf16", "fp32"},
           {"", "fp32", "absent"}}) {
    SCOPED_TRACE(c.words);
    const Import import = import_precision(c.words);
    EXPECT_EQ(import.at("training.precision"), c.precision);
    EXPECT_EQ(import.at("training.gradient_dtype"), c.gradients);
    EXPECT_THAT(import.messages, IsEmpty());
    ASSERT_TRUE(import.fragment.has_value());
    EXPECT_THAT(import.fragment->ignored, testing::Not(Contains(HasSubstr("type"))));
    EXPECT_EQ(testing::Value(import.fragment->assumed, Contains("precision fp32")),
              std::string(c.words).empty());
  }
}

TEST(NeoxImport, ReadsBiasesOfBothBlocksAndTheNormOfQAndK) {
  const auto import = [](const std::string& more) {
    return import_text(R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "seq_length": 32,
      "pos_emb": "rotary", "train_micro_batch_size_per_gpu": 1)" +
                           more + "}",
                       {.gpus = 8, .vocab = 1000, .node = "dgx-h100"});
  };
  EXPECT_EQ(import("").at("model.biases"), "true");
  EXPECT_EQ(import("").at("model.qk_norm"), "absent");
  EXPECT_EQ(import(R"(, "use_qk_layernorm": true)").at("model.qk_norm"), "true");
  EXPECT_EQ(import(R"(, "use_bias_in_attn_linear": false, "use_bias_in_mlp": false)").at("model.biases"),
            "false");
  EXPECT_EQ(import(R"(, "use_bias_in_mlp": false)").at("model.biases"), "refused");
  EXPECT_THAT(import(R"(, "use_bias_in_attn_linear": false)").messages,
              Contains(HasSubstr("leaves the biases of the feed-forward block")));
}

// System: Llama 2 as GPT-NeoX's configs/llama2 have it, which give three times the width of a gated block:
// 32,768 * 2 / 3 = 21,845, the next multiple of 512 is 22,016, half of it the gate's. Expectations: the
// widths of the published models; parameters of 7B are those of its configuration at Hugging Face.
TEST(NeoxImport, TakesTwoThirdsOfTheWidthOfAGatedBlock) {
  const auto import = [](const std::string& more) {
    return import_text(
        R"({"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "seq_length": 4096,
      "pos_emb": "rotary", "norm": "rmsnorm", "no_weight_tying": true, "use_bias_in_attn_linear": false, "use_bias_in_mlp": false,
      "train_micro_batch_size_per_gpu": 1, "make_vocab_size_divisible_by": 1, )" +
            more + "}",
        {.gpus = 8, .vocab = 32'000, .node = "dgx-h100"});
  };
  const auto width = [&](const std::string& more) { return import(more).at("model.ffn_hidden"); };
  const Import llama =
      import(R"("activation": "swiglu", "intermediate_size": 32768, "mlp_multiple_of": 256)");
  EXPECT_EQ(llama.at("model.ffn_hidden"), "11008");
  EXPECT_EQ(parameters(llama), 6'738'415'616);
  EXPECT_THAT(llama.messages, IsEmpty());
  EXPECT_EQ(width(R"("activation": "swiglu", "intermediate_size": 86016, "mlp_multiple_of": 256)"), "28672");
  EXPECT_EQ(width(R"("activation": "swiglu", "mlp_multiple_of": 256)"), "5632");  // 16384, 10922, 11264
  EXPECT_EQ(width(R"("activation": "swiglu", "expansion_factor": 8)"), "10923");  // 32768, 21845, 21846
  EXPECT_EQ(width(R"("activation": "gelu", "intermediate_size": 16000)"), "16000");
  EXPECT_EQ(width(R"("activation": "gelu", "mlp_multiple_of": 3000)"), "18000");
}

TEST(NeoxImport, RefusesPrecisionsThatContradictOrAreUnknown) {
  EXPECT_THAT(import_precision(R"(, "precision": "fp32", "fp16": {"enabled": true})").messages,
              Contains(HasSubstr("precision: 'fp32', and the section fp16 says otherwise")));
  EXPECT_THAT(import_precision(R"(, "precision": "fp16", "fp16": {"type": "bfloat16"})").messages,
              Contains(HasSubstr("precision: 'fp16', and the section fp16 says otherwise")));
  EXPECT_THAT(import_precision(R"(, "precision": "bf16")").messages,
              Contains(HasSubstr("precision: 'bf16' is no precision of GPT-NeoX\n  hint: one of fp16, "
                                 "bfloat16, fp32")));
}

TEST(NeoxImport, WarnsOfOptimizersThatAreNoAdam) {
  EXPECT_THAT(import_precision(R"(, "optimizer": {"type": "sm3"})").messages,
              testing::ElementsAre(HasSubstr("optimizer.type: 'sm3' is not modelled: Adam's states")));
}

// "pipe-parallel-size": 1 would win over "pipe_parallel_size": 4, or the other way round.
TEST(NeoxImport, RefusesAVocabularyThatContradictsTheFile) {
  const std::string padded =
      R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "seq_length": 32,
    "pos_emb": "rotary", "train_micro_batch_size_per_gpu": 4, "padded_vocab_size": 50304})";
  const auto messages = [&](int vocab) {
    return import_text(padded, {.gpus = 8, .vocab = vocab, .node = "dgx-h100"}).messages;
  };
  EXPECT_THAT(messages(60'000), Contains(HasSubstr("error: --vocab: 60000 is asked for, and the file says "
                                                   "padded_vocab_size 50304")));
  EXPECT_THAT(messages(50'257), IsEmpty());  // 393 * 128
}

TEST(NeoxImport, RefusesAKeyInTwoSpellings) {
  const Import import = import_precision(R"(, "pipe-parallel-size": 1, "pipe_parallel_size": 4)");
  EXPECT_FALSE(import.fragment.has_value());
  EXPECT_THAT(import.messages, Contains(HasSubstr("error: pipe_parallel_size: is given twice")));
}

TEST(NeoxImport, SaysWhatIsWrongWithYamlInTheWordsOfYaml) {
  const std::string text = sample("neox/20B.yml");
  const std::string cut = text.substr(0, text.size() / 2);
  for (const char* name : {"20B.yml", "-"}) {
    const Import import = import_text(cut, {}, name);
    EXPECT_THAT(import.messages, testing::ElementsAre(HasSubstr("this '{' is never closed"))) << name;
  }
  // JSON it is by its name, and then a comment is the mistake.
  EXPECT_THAT(import_text("{ # stage\n", {}).messages, Contains(HasSubstr("JSON has no comments")));
}

TEST(NeoxImport, AsksForTheNumberOfGpus) {
  const Import import = import_text(sample("neox/20B.yml"));
  EXPECT_THAT(import.messages,
              Contains(HasSubstr("nothing says how many GPUs the job has\n  hint: --gpus N, a "
                                 "multiple of 8")));
  EXPECT_THAT(import_text(sample("neox/175B.yml")).messages,
              Contains(testing::EndsWith("nothing says how many GPUs the job has\n  hint: --gpus N")));
  EXPECT_THAT(import_text(sample("neox/20B.yml"), {.gpus = 4}).messages,
              Contains(HasSubstr("4 GPUs are fewer than tensor × pipeline = 8")));
}

// System: no --gpus. Expectations: what is offered is a job with what the file says.
TEST(DeepSpeedImport, OffersNumbersThatFitTheBatch) {
  const auto missing = [](const std::string& text, const ImportRequest& request = {}) {
    const Import import = import_text(text, request);
    return import.fragment ? import.fragment->missing : std::vector<std::string>{};
  };
  // 1 x 8 on the 8 ranks of a node.
  EXPECT_THAT(
      missing(R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8})"),
      AllOf(Contains("global_batch_size: 64   # under training; micro-batch 1 × accumulation 8 × 8 data "
                     "ranks"),
            Contains("cluster: {node: dgx-a100-80gb, nodes: 1}   # or import with --gpus N --node NAME")));
  // 256 = 4 x 4 x 16: two nodes.
  EXPECT_THAT(missing(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4,
                          "gradient_accumulation_steps": 4})"),
              Contains(HasSubstr("cluster: {node: dgx-a100-80gb, nodes: 2}")));
  // 12 samples do not split over 8 ranks, but over 6.
  EXPECT_THAT(missing(R"({"train_batch_size": 12})"),
              Contains(HasSubstr("cluster: {node: dgx-a100-80gb, gpus: 6}")));
  // 64 over 8 ranks, twice: 4 samples each.
  EXPECT_THAT(missing(R"({"train_batch_size": 64, "gradient_accumulation_steps": 2})"),
              Contains("micro_batch_size: 4   # under training"));
  // 24 ranks: 256 does not split.
  EXPECT_THAT(missing(R"({"bf16": {"enabled": true}})", {.gpus = 24, .node = "dgx-h100"}),
              Contains("global_batch_size: 24   # under training"));
}

TEST(DeepSpeedImport, RefusesNamesThatAreNearlyThoseThatDecide) {
  const Import import = import_text(R"({"zero_optimisation": {"stage": 3}, "bf16": {"enable": true},
    "steps_per_prints": 10, "train_batch_size": 64})");
  EXPECT_FALSE(import.fragment.has_value());
  EXPECT_THAT(
      import.messages,
      AllOf(Contains("ds.json:1:2: error: zero_optimisation: is not known here, and not read\n"
                     "  hint: did you mean zero_optimization?"),
            Contains(HasSubstr("error: bf16.enable: is not known here, and not read\n  hint: did you mean "
                               "bf16.enabled?")),
            Contains(HasSubstr("warning: steps_per_prints: is not known here, and not read\n  hint: did you "
                               "mean steps_per_print?"))));
  // Beside the name itself it is without effect.
  EXPECT_TRUE(import_text(R"({"bf16": {"enable": true, "enabled": true}})").fragment.has_value());
}

}  // namespace
}  // namespace stagecraft
