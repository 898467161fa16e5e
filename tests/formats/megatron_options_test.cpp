#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "formats/megatron.hpp"
#include "tests/formats/megatron_jobs.hpp"

namespace stagecraft {
namespace {

using namespace testing_megatron;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

void expect_said(const Import& import, const std::string& said) {
  EXPECT_THAT(import.messages, Contains(HasSubstr(said)));
}

void expect_refused(const Import& import, const std::string& said) {
  EXPECT_FALSE(import.fragment.has_value());
  expect_said(import, "error: " + said);
}

void expect_aside(const Import& import, const std::string& line) {
  ASSERT_TRUE(import.fragment.has_value());
  EXPECT_THAT(import.fragment->ignored, Contains(line));
}

TEST(MegatronOptions, Fp8OfAnyAge) {
  for (const char* option : {"--fp8-hybrid", "--fp8-e4m3", "--fp8-format hybrid", "--fp8 e4m3"}) {
    const Import import = import_text(job(option));
    EXPECT_EQ(import.at("training.precision"), "fp8") << option;
    EXPECT_EQ(import.at("cluster.node"), "dgx-h100") << option;
  }
  expect_said(import_text(job("--fp8-hybrid")),
              "job:3: warning: --fp8-hybrid: is a name of the past, read as --fp8-format");
  EXPECT_EQ(import_text(job_dump("  fp8_e4m3 .. True\n  fp8_hybrid .. False\n")).at("training.precision"),
            "fp8");
  EXPECT_EQ(import_text(job_dump("  fp8_e4m3 .. False\n  fp8_hybrid .. False\n")).at("training.precision"),
            "bf16");
}

TEST(MegatronOptions, RecipesOfFp8HaveOurNames) {
  EXPECT_EQ(import_text(job("--fp8-hybrid --fp8-recipe tensorwise")).at("options.fp8_recipe"), "current");
  EXPECT_EQ(import_text(job("--fp8-hybrid --fp8-recipe mxfp8")).at("options.fp8_recipe"), "mxfp8");
  EXPECT_EQ(import_text(job_dump("  fp8 .. hybrid\n  fp8_recipe .. delayed\n")).at("options.fp8_recipe"),
            "delayed");
  expect_said(import_text(job("--fp8-hybrid --fp8-recipe custom")),
              "--fp8-recipe: 'custom' is not modelled: one scale a tensor counts");
  expect_aside(import_text(job("--fp8-recipe mxfp8")), "without fp8: --fp8-recipe");
}

TEST(MegatronOptions, OfFp8MatterOnlyWithIt) {
  const std::string more = "--fp8-dot-product-attention --no-fp8-wgrad --fp8-wibble --fp8-margin 0";
  const Import with = import_text(job("--fp8-hybrid " + more));
  expect_said(with,
              "--fp8-dot-product-attention: attention in 8 bit is read beside --fp8-recipe mxfp8 alone");
  expect_said(with, "--no-fp8-wgrad: is not modelled: weight gradients stay in 16 bit");
  expect_said(with, "--fp8-wibble: is not known here");
  expect_aside(with, "scaling recipes of fp8: --fp8-margin");
  const Import without = import_text(job(more));
  expect_aside(without, "without fp8: --fp8-dot-product-attention, --no-fp8-wgrad, --fp8-wibble");
  EXPECT_THAT(without.messages, Not(Contains(HasSubstr("fp8"))));
}

TEST(MegatronOptions, Fp4IsARecipeOfFp8) {
  for (const char* option : {"--fp4-format e2m1", "--fp4 e2m1"}) {
    const Import import = import_text(job(option));
    EXPECT_EQ(import.at("training.precision"), "fp8") << option;
    EXPECT_EQ(import.at("training.gradient_dtype"), "fp32") << option;
    EXPECT_EQ(import.at("training.sixteen_bit_layers"), "absent") << option;
    EXPECT_EQ(import.at("options.fp8_recipe"), "nvfp4") << option;
    EXPECT_EQ(import.at("options.fp8_parameters"), "false") << option;
    EXPECT_EQ(import.at("cluster.node"), "dgx-b200") << option;
    EXPECT_THAT(import.fragment->assumed, Contains(HasSubstr("--fp4-recipe nvfp4"))) << option;
  }
  const Import gathers = import_text(job("--fp4-format e2m1 --fp4-recipe nvfp4 --fp4-param-gather"));
  EXPECT_EQ(gathers.at("options.fp8_parameters"), "true");
  const std::string yaml = to_yaml(*gathers.fragment);
  for (const char* line : {"precision: fp8  # --fp4-format\n", "fp8_recipe: nvfp4  # --fp4-recipe\n",
                           "fp8_parameters: true  # --fp4-param-gather\n"})
    EXPECT_THAT(yaml, HasSubstr(line));
  EXPECT_EQ(import_text(job("--fp4-format e2m1"), {.node = "dgx-b300"}).at("cluster.node"), "dgx-b300");
}

// A dump has the defaults of fp8, too; that of 2025 has --fp4-param-gather under another name.
TEST(MegatronOptions, OfFp4AreReadFromADump) {
  const std::string defaults = "  fp8 .. None\n  fp8_recipe .. delayed\n  fp8_param_gather .. False\n";
  const std::string fp4 = defaults + "  fp4 .. e2m1\n  fp4_recipe .. nvfp4\n";
  for (const char* gathers : {"fp4_param", "fp4_param_gather"}) {
    const Import import = import_text(job_dump(fp4 + "  " + gathers + " .. True\n"));
    EXPECT_EQ(import.at("training.precision"), "fp8") << gathers;
    EXPECT_EQ(import.at("options.fp8_recipe"), "nvfp4") << gathers;
    EXPECT_EQ(import.at("options.fp8_parameters"), "true") << gathers;
    expect_aside(import, "without fp8: fp8_recipe");
    EXPECT_THAT(import.messages, Not(Contains(HasSubstr("fp4"))));
  }
  EXPECT_EQ(import_text(job_dump(fp4 + "  fp4_param .. False\n")).at("options.fp8_parameters"), "false");
  const Import without =
      import_text(job_dump(defaults + "  fp4 .. None\n  fp4_recipe .. nvfp4\n  fp4_param .. False\n"));
  EXPECT_EQ(without.at("training.precision"), "bf16");
  expect_aside(without, "without fp4: fp4_recipe");
}

TEST(MegatronOptions, AttentionInFp8AndFusedExpertsAreReadBesideMxfp8) {
  const std::string both = " --fp8-dot-product-attention --use-transformer-engine-op-fuser --num-experts 8";
  const Import with = import_text(job("--fp8-format e4m3 --fp8-recipe mxfp8" + both));
  EXPECT_EQ(with.at("options.fp8_attention"), "mxfp8");
  EXPECT_EQ(with.at("options.fused_experts"), "true");
  EXPECT_EQ(with.at("cluster.node"), "dgx-b200");  // assumed: Hopper has no MXFP8
  const Import other = import_text(job("--fp8-format hybrid --fp8-recipe tensorwise" + both));
  EXPECT_THAT(other.messages,
              Contains(HasSubstr("--fp8-dot-product-attention: attention in 8 bit is read beside "
                                 "--fp8-recipe mxfp8 alone")));
  EXPECT_EQ(other.at("cluster.node"), "dgx-h100");
  EXPECT_EQ(other.at("options.fused_experts"), "absent");
  const Import dense =
      import_text(job("--fp8-format e4m3 --fp8-recipe mxfp8 --use-transformer-engine-op-fuser"));
  EXPECT_EQ(dense.at("options.fused_experts"), "absent");
}

TEST(MegatronOptions, Fp4BesideFp8IsRefused) {
  for (const std::string fp8 : {"--fp8-format hybrid", "--fp8-hybrid"})
    expect_refused(import_text(job("--fp4-format e2m1\n" + fp8)),
                   "--fp4-format: e2m1 stands beside " + fp8 +
                       "\n  note: job:4: the other stands here\n  hint: keep one of them: Megatron-LM "
                       "refuses both together");
  expect_refused(import_text(job_dump("  fp8 .. e4m3\n  fp4 .. e2m1\n")), "fp4: e2m1 stands beside fp8 e4m3");
}

TEST(MegatronOptions, OfFp4MatterOnlyWithIt) {
  expect_said(import_text(job("--fp4-format e2m1 --fp4-recipe custom --fp4-quantizer-factory a.b")),
              "warning: --fp4-recipe: 'custom' is not modelled: nvfp4 counts");
  const std::string more = "--fp4-recipe custom --fp4-param-gather --fp4-wibble --fp4-quantizer-factory a.b";
  const Import with = import_text(job("--fp4-format e2m1 " + more));
  EXPECT_EQ(with.at("options.fp8_recipe"), "nvfp4");
  expect_said(with, "--fp4-wibble: is not known here");
  expect_aside(with, "scaling recipes of fp4: --fp4-quantizer-factory");
  for (const char* format : {"", "--fp8-format hybrid "}) {
    const Import without = import_text(job(format + more));
    expect_aside(without, "without fp4: --fp4-recipe, --fp4-param-gather, --fp4-wibble");
    EXPECT_THAT(without.messages, Not(Contains(HasSubstr("fp4")))) << format;
  }
  expect_aside(import_text(job("--fp4-format e2m1 --fp8-recipe mxfp8 --fp8-param-gather")),
               "without fp8: --fp8-recipe, --fp8-param-gather");
  expect_said(import_text(job("--fp4-format e2m1 --te-precision-config-file x.yaml")),
              "--te-precision-config-file: is not modelled: a file with more settings");
}

// System: 8 layers.
TEST(MegatronOptions, TheLayersOfBothEndsMayStayInSixteenBits) {
  const auto ends = [](const Import& import) {
    return import.at("training.sixteen_bit_layers.first") + " " +
           import.at("training.sixteen_bit_layers.last");
  };
  const std::string start = " --num-layers-at-start-in-bf16 ", end = " --num-layers-at-end-in-bf16 ";
  for (const std::string format : {"--fp8-format e4m3 --fp8-recipe mxfp8", "--fp4-format e2m1"}) {
    const std::string bf16 = format + " --first-last-layers-bf16";
    const Import ones = import_text(job(bf16));
    EXPECT_EQ(ends(ones), "1 1") << format;
    EXPECT_THAT(ones.fragment->assumed, Contains(HasSubstr("--num-layers-at-start-in-bf16 1")));
    const Import given = import_text(job(bf16 + start + "0" + end + "3"));
    EXPECT_EQ(ends(given), "0 3") << format;
    EXPECT_THAT(given.fragment->assumed, Not(Contains(HasSubstr("in-bf16"))));
    const Import off = import_text(job(format + start + "2" + end + "3"));
    EXPECT_EQ(off.at("training.sixteen_bit_layers"), "absent") << format;
    expect_aside(
        off, "without first_last_layers_bf16: --num-layers-at-start-in-bf16, --num-layers-at-end-in-bf16");
    expect_refused(import_text(job(bf16 + end + "-1")), "--num-layers-at-end-in-bf16: -1 is not between 0");
    EXPECT_THAT(import_text(job(bf16 + end + "3")).messages, Not(Contains(HasSubstr("is not modelled"))));
  }
  EXPECT_THAT(to_yaml(*import_text(job("--fp4-format e2m1 --first-last-layers-bf16" + end + "3")).fragment),
              HasSubstr("  sixteen_bit_layers:\n    first: 1  # --first-last-layers-bf16\n    last: 3  # "
                        "--num-layers-at-end-in-bf16\n"));
  const std::string dump = "  num_layers_at_start_in_bf16 .. 2\n  num_layers_at_end_in_bf16 .. 0\n";
  const std::string on = "  first_last_layers_bf16 .. True\n", off = "  first_last_layers_bf16 .. False\n";
  EXPECT_EQ(ends(import_text(job_dump("  fp4 .. e2m1\n" + on + dump))), "2 0");
  EXPECT_EQ(import_text(job_dump("  fp4 .. e2m1\n" + off + dump)).at("training.sixteen_bit_layers"),
            "absent");
}

// Megatron-LM counts from both ends.
TEST(MegatronOptions, AsManyLayersAsThereAreStayInSixteenBits) {
  const std::string bf16 = "--fp4-format e2m1 --first-last-layers-bf16 --num-layers-at-start-in-bf16 6 ";
  const Import all = import_text(job(bf16 + "--num-layers-at-end-in-bf16 4"));
  EXPECT_EQ(all.at("training.sixteen_bit_layers.first"), "6");
  EXPECT_EQ(all.at("training.sixteen_bit_layers.last"), "2");
  EXPECT_THAT(all.fragment->assumed, Contains("--first-last-layers-bf16: all 8 layers stay in 16 bit"));
}

TEST(MegatronOptions, WithoutFp8AllLayersAreInSixteenBits) {
  const Import import = import_text(
      job("--first-last-layers-bf16 --num-layers-at-start-in-bf16 2 --num-layers-at-end-in-bf16 2"));
  EXPECT_EQ(import.at("training.sixteen_bit_layers"), "absent");
  expect_aside(
      import,
      "without fp8: --first-last-layers-bf16, --num-layers-at-start-in-bf16, --num-layers-at-end-in-bf16");
  EXPECT_THAT(import.messages, Not(Contains(HasSubstr("bf16"))));
}

// Unknown names that say by a word that the model is another: never passed over.
TEST(MegatronOptions, ThatChangeTheModelByTheirNamesAreRefused) {
  for (const char* option :
       {"--multi-head-latent-attention", "--first-k-dense-replace 3", "--moe-intermediate-size 32",
        "--qk-nope-head-dim 16", "--use_rms_norm", "--glu-activation swiglu", "--no_tie_embed_logits",
        "--extra-vocab-size 3", "--n-shared-experts 1", "--noop-layers 2", "--ds-sequence-parallel-size 2",
        "--context-parallel-algo ulysses_cp_algo", "--squared-relu", "--swa-windows 128", "--share-kvstates"})
    EXPECT_FALSE(import_text(job(std::string("--num-experts 8 ") + option)).fragment.has_value()) << option;
}

// A word of layers, heads or experts in a name that says nothing of their number and width.
TEST(MegatronOptions, OfHowLayersAreComputedAndLearnedAreNotRefused) {
  for (const char* option : {"--use-fused-rmsnorm",
                             "--use-fused-swiglu",
                             "--moe-permutation-async-comm",
                             "--ds-sequence-parallel-size 1",
                             "--kill-switch-path x",
                             "--norm-topk-prob",
                             "--apply-wd-to-qk-layernorm",
                             "--mup-base-hidden-size 64",
                             "--mtp-detach-heads",
                             "--qk-l2-norm",
                             "--glu-linear-offset 1.0",
                             "--scale-depth 1.4",
                             "--dim-model-base 256",
                             "--skip-bias-add",
                             "--moe-experts-pipeline-degree 2",
                             "--kv-head-repeat-before-uly-alltoall",
                             "--input-layernorm-in-fp32",
                             "--zero-centered-rmsnorm",
                             "--use-grouped-gemm-for-dense-mlp",
                             "--moe-mlp-glu-interleave-size 32",
                             "--moe-single-grouped-bias",
                             "--moe-n-hash-layers 3",
                             "--moe-routing-trace-capture-hidden-states",
                             "--no-use-layer-wise-param-layout",
                             "--gtp-expert-remat-nccl-ub",
                             "--use-inference-optimized-layers",
                             "--mlp-chunks-for-prefill 2",
                             "--expert-dropout 0.1",
                             "--retro-encoder-hidden-dropout 0.1",
                             "--biencoder-projection-dim 0",
                             "--head-lr-mult 1.0",
                             "--dino-norm-last-layer"})
    EXPECT_TRUE(import_text(job(std::string("--num-experts 8 ") + option)).fragment.has_value()) << option;
}

TEST(MegatronOptions, OfLatentAttentionContradictItsAbsence) {
  expect_refused(import_text(job("--q-lora-rank 16")),
                 "--q-lora-rank: 16 is a size of latent attention, and there is no multi-latent-attention");
  EXPECT_TRUE(import_text(job("--kv-lora-rank 32 --v-head-dim 128")).fragment.has_value());  // as by default
}

TEST(MegatronOptions, OfExpertsAreKnownOneByOne) {
  const std::string more = "--moe-wibble 3 --moe-extended-tp --moe-z-loss-coeff 1e-3";
  const Import with = import_text(job("--num-experts 8 " + more));
  expect_said(with, "--moe-wibble: is not known here, and not read");
  expect_said(with, "--moe-extended-tp: is not modelled: tensor and expert ranks split each expert");
  expect_aside(with, "which expert a token visits: --moe-z-loss-coeff");
  const Import without = import_text(job(more));
  EXPECT_THAT(without.messages, Not(Contains(HasSubstr("moe"))));
  expect_aside(without, "without num_experts: --moe-wibble, --moe-extended-tp");
  expect_refused(import_text(job("--num-experts 8 --moe-latent-size 32")),
                 "--moe-latent-size: is not supported: experts that work in a narrower space");
}

// Megatron-LM of 2024: the experts of a rank are a group, and a token goes to three of eight ranks at most.
TEST(MegatronOptions, ALimitOfRanksIsALimitOfGroups) {
  const std::string limited = "--num-experts 64 --moe-router-topk 6 --moe-router-topk-limited-devices 3 ";
  const Import import = import_text(job(limited + "--expert-model-parallel-size 8"));
  EXPECT_EQ(import.at("model.experts.groups"), "8");
  EXPECT_EQ(import.at("model.experts.top_groups"), "3");
  EXPECT_EQ(import_text(job(limited)).at("model.experts.groups"), "absent");  // one rank has all
  expect_refused(import_text(job(limited + "--moe-router-num-groups 8 --moe-router-group-topk 4")),
                 "--moe-router-topk-limited-devices: limits the ranks, and the groups are limited as well");
}

TEST(MegatronOptions, SwitchesThatADumpHasOffAreToldOfAsTheirOptionsAre) {
  const std::string off =
      "  tp_comm_bulk_dgrad ... False\n  tp_comm_bulk_wgrad ... True\n  tp_comm_overlap_ag ... False\n"
      "  tp_comm_overlap_rs ... True\n  fp8_wgrad ... False\n";
  const std::string tensor = "  tensor_model_parallel_size 2\n  sequence_parallel .. True\n";
  const Import with = import_text(job_dump(off + tensor + "  tp_comm_overlap .. True\n  fp8 .. hybrid\n"));
  for (const char* name : {"tp_comm_bulk_dgrad", "tp_comm_overlap_ag", "fp8_wgrad"})
    expect_said(with, std::string(name) + ": is not modelled: ");
  expect_aside(with, "as by default: tp_comm_bulk_wgrad, tp_comm_overlap_rs");
  const Import without = import_text(job_dump(off + tensor + "  tp_comm_overlap .. False\n"));
  EXPECT_THAT(without.messages, Not(Contains(HasSubstr("is not modelled"))));
  for (const std::string& text :
       {job_dump("  gradient_reduce_div_fusion False\n"), job("--no-gradient-reduce-div-fusion")})
    expect_said(import_text(text), "is not modelled: gradients are divided by a kernel of their own");
  const Import options = import_text(job(
      "--tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap --disable-tp-comm-overlap-ag"));
  expect_said(options, "--disable-tp-comm-overlap-ag: is not modelled: a part of the tensor ranks'");
}

TEST(MegatronOptions, AnAllReduceOfInputsThatWaitsIsAWarningWhereThereIsOne) {
  const std::string off = "  async_tensor_model_parallel_allreduce False\n";
  const std::string tensor = off + "  tensor_model_parallel_size 2\n";
  const std::string said = "async_tensor_model_parallel_allreduce: is not modelled: the all-reduce of inputs";
  expect_said(import_text(job_dump(tensor)), said);
  for (const std::string& more : {off, tensor + "  sequence_parallel .. True\n"})
    EXPECT_THAT(import_text(job_dump(more)).messages, Not(Contains(HasSubstr("all-reduce of inputs"))));
  expect_said(import_text(job("--tensor-model-parallel-size 2 --no-async-tensor-model-parallel-allreduce")),
              "--no-async-tensor-model-parallel-allreduce: is not modelled: the all-reduce of inputs");
}

TEST(MegatronOptions, AFileOfDeepSpeedIsNotRead) {
  const Import with = import_text(job("--deepspeed --deepspeed_config ds.json --zero-stage 1"));
  expect_said(with, "--deepspeed_config: is not modelled: a file with more settings, which is not read");
  EXPECT_EQ(with.at("parallelism.zero_stage"), "1");
  const Import without = import_text(job("--deepspeed_config ds.json"));
  expect_aside(without, "of DeepSpeed, which is off: --deepspeed_config");
  EXPECT_THAT(without.messages, Not(Contains(HasSubstr("deepspeed"))));
}

TEST(MegatronOptions, PositionsThatNobodyKnowsAreRefused) {
  for (const char* word : {"alibi", "ropee", "relative", "none"})
    expect_refused(import_text(job("--position-embedding-type " + std::string(word))),
                   "--position-embedding-type: '" + std::string(word) + "' positions are not supported");
  EXPECT_EQ(import_text(job("--position-embedding-type learned_absolute")).at("model.position"), "learned");
  EXPECT_EQ(import_text(job("--position-embedding-type yarn")).at("model.position"), "rope");
  const std::string fork = "  position_embedding_type PositionEmbeddingType.";
  EXPECT_EQ(import_text(job_dump(fork + "absolute\n")).at("model.position"), "learned");
  EXPECT_EQ(import_text(job_dump(fork + "rotary\n")).at("model.position"), "rope");
}

TEST(MegatronOptions, TheScriptEndsThoseOfTheLauncher) {
  const std::string options = job("");
  const std::string of_the_job = options.substr(0, options.find("--nnodes"));
  for (const char* launcher : {"torchrun --nnodes 16 --nproc_per_node 8 pretrain_gpt.py ",
                               "python -u -m torch.distributed.run --nproc-per-node 8 --nnodes=16 "
                               "--no-python $HERE/pretrain_gpt.py ",
                               "torchrun --nnodes 16 --nproc_per_node 8 --standalone ./pretrain_gpt.py ",
                               "srun -N 16 --mpi=pmix python -m torch.distributed.launch --nnodes 16 "
                               "--nproc_per_node 8 pretrain_gpt.py "}) {
    const Import import = import_text(launcher + of_the_job + " --global-batch-size 128");
    EXPECT_THAT(import.messages, Not(Contains(HasSubstr("is not known here")))) << launcher;
    EXPECT_EQ(import.at("cluster.nodes"), "16") << launcher;
    EXPECT_EQ(import.at("parallelism.data"), "128") << launcher;
    for (const char* word : {"pretrain_gpt", "torchrun", "'python'"})
      EXPECT_THAT(import.messages, Not(Contains(HasSubstr(word)))) << launcher;
  }
  // The value of an option of Megatron-LM's own is none.
  expect_aside(import_text(job("--data-path words.py")), "files and data: --data-path");
}

TEST(MegatronOptions, AVariableIsItsDefaultWhereNothingElseIsSaid) {
  const std::string options = job("--seq-length ${LENGTH:-4096}");
  const Import import = import_text(options);
  EXPECT_EQ(import.at("training.sequence_length"), "4096");
  EXPECT_THAT(import.messages, Contains(HasSubstr("$LENGTH is not known: '4096', its default, is taken")));
  EXPECT_EQ(import_text(options, {}, {{"LENGTH", "1024"}}).at("training.sequence_length"), "1024");
  expect_refused(import_text(job("--seq-length ${LENGTH:-$OTHER}")), "--seq-length: the value of $LENGTH");
}

// Megatron-LM pads the size that the tokenizer has.
TEST(MegatronOptions, TheVocabularyIsTheTokenizers) {
  const auto vocab = [](const std::string& options, const ImportRequest& request = {}) {
    return import_text(job(options), request);
  };
  EXPECT_EQ(vocab("--tokenizer-type NullTokenizer --vocab-size 1024").at("model.vocab"), "1152");
  EXPECT_EQ(vocab("--tokenizer-type TikTokenizer --vocab-size 1024").at("model.vocab"), "1024");
  const std::string of_files = "--tokenizer-type HuggingFaceTokenizer --vocab-size 1024";
  EXPECT_THAT(vocab(of_files).messages,
              Contains(HasSubstr("--vocab-size: a HuggingFaceTokenizer has the tokens of its files")));
  EXPECT_EQ(vocab(of_files, {.vocab = 2048}).at("model.vocab"), "2048");
}

// System: 8 layers. Megatron-LM turns the switch on where there are layers; a dump says both.
TEST(MegatronOptions, LayersOnTheHostAreOffloadedWithoutTheSwitch) {
  EXPECT_EQ(import_text(job("--cpu-offloading-num-layers 2")).at("offload.activations"), "0.25");
  EXPECT_EQ(import_text(job("--cpu-offloading-num-layers 0")).at("offload"), "absent");
  const std::string log = sample("made_args_dump_traps.log.txt");
  EXPECT_EQ(import_text(with_arguments(log, "  cpu_offloading_num_layers ....... 0\n")).at("offload"),
            "absent");
  EXPECT_NE(
      import_text(with_arguments(log, "  cpu_offloading_num_layers ....... 1\n")).at("offload.activations"),
      "absent");
}

// FSDP2 has no switches for what it overlaps; Megatron-LM sets those of what its own FSDP shards.
TEST(MegatronOptions, FsdpOverlapsByItself) {
  const auto overlaps = [](const std::string& options) {
    const Import import = import_text(job(options));
    return import.at("overlap.gradients") + " " + import.at("overlap.parameters");
  };
  EXPECT_EQ(overlaps("--use-torch-fsdp2"), "true true");
  for (const std::string fsdp : {"--use-custom-fsdp", "--use-megatron-fsdp"}) {
    EXPECT_EQ(overlaps(fsdp + " --data-parallel-sharding-strategy optim"), "false false");
    EXPECT_EQ(overlaps(fsdp + " --data-parallel-sharding-strategy optim_grads"), "true false");
    EXPECT_EQ(overlaps(fsdp + " --data-parallel-sharding-strategy optim_grads_params"), "true true");
  }
  EXPECT_EQ(overlaps("--use-distributed-optimizer"), "false false");
  EXPECT_THAT(to_yaml(*import_text(job("--use-torch-fsdp2")).fragment),
              HasSubstr("gradients: true  # --use-torch-fsdp2, which overlaps\n"));
}

std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// BLOOM: 70 layers and both ends are 72 units, six on each of twelve ranks.
TEST(MegatronOptions, TheEmbeddingMayBeALayerOfDeepSpeedsStages) {
  const std::string bloom =
      "--num-layers 70 --hidden-size 64 --num-attention-heads 4 --max-position-embeddings 32 --seq-length "
      "32\n"
      "--micro-batch-size 1 --global-batch-size 64 --vocab-size 1000 --bf16 --nnodes 12 --nproc-per-node 8\n"
      "--deepspeed --pipeline-model-parallel-size 12 ";
  const Import ends = import_text(bloom + "--pp-partition-method 'type:transformer|embedding'");
  EXPECT_EQ(ends.at("parallelism.embedding_as_layer"), "true");
  EXPECT_EQ(ends.at("parallelism.loss_as_layer"), "true");
  // As BigScience's scripts hold it in a variable, for a shell that reads it again.
  EXPECT_EQ(
      import_text("ARGS=\"--pp-partition-method 'type:transformer|embedding'\"\npretrain_gpt.py $ARGS " +
                  on_one_line(bloom))
          .at("parallelism.loss_as_layer"),
      "true");
  for (const std::string even : {"", "--pp-partition-method type:transformer"})
    EXPECT_THAT(
        import_text(bloom + even).messages,
        Contains(HasSubstr("error: --num-layers: 70 layers do not split evenly over 12 pipeline ranks")));
  // A head of its own is called otherwise.
  EXPECT_THAT(import_text(bloom + "--untie-embeddings-and-output-weights --pp-partition-method "
                                  "'type:transformer|embedding'")
                  .messages,
              Contains(HasSubstr("70 layers and 1 end of pp_partition_method do not split evenly")));
  EXPECT_THAT(import_text(bloom + "--pp-partition-method parameters").messages,
              Contains(HasSubstr("error: --pp-partition-method: 'parameters' is not supported")));
}

// As Python's argparse has it.
TEST(MegatronOptions, TheBeginningOfOneOptionIsThatOption) {
  const Import grouped = import_text(job("--group-query-attention --num-query-group 2"));
  EXPECT_EQ(grouped.at("model.kv_heads"), "2");
  EXPECT_THAT(grouped.messages,
              Contains(HasSubstr("warning: --num-query-group: is the beginning of one known "
                                 "option, and read as --num-query-groups")));
  EXPECT_EQ(import_text(job("--disable-bias")).at("model.biases"), "false");
  EXPECT_THAT(import_text(job("--pp 2")).messages, Contains(HasSubstr("--pp: is not known here")));
  // Two options begin so; srun's are not Megatron-LM's.
  EXPECT_THAT(import_text(job("--hidden 64")).messages, Contains(HasSubstr("--hidden: is not known here")));
  const Import launched = import_text("srun --partition gpu pretrain_gpt.py " + job(""));
  EXPECT_THAT(launched.messages, Not(Contains(HasSubstr("--partition"))));
}

// The script's default, where it is named.
TEST(MegatronOptions, PretrainGptHasTheTokenizerOfGpt2) {
  const std::string options =
      " --num-layers 8 --hidden-size 64 --num-attention-heads 4 --max-position-embeddings 32 --seq-length 32 "
      "--micro-batch-size 1 --global-batch-size 64 --bf16 --nnodes 2 --nproc-per-node 8";
  const Import named = import_text("torchrun pretrain_gpt.py" + options);
  EXPECT_EQ(named.at("model.vocab"), "50304");  // 393 * 128
  EXPECT_THAT(named.messages,
              Contains(HasSubstr("no size of the vocabulary is given: GPT-2's 50257 tokens")));
  EXPECT_EQ(import_text("torchrun other.py" + options).at("model.vocab"), "absent");
  EXPECT_EQ(import_text("torchrun pretrain_gpt.py" + options, {.vocab = 1000}).at("model.vocab"), "1024");
}

TEST(MegatronOptions, SourcesAreWhereTheValueIsFrom) {
  const std::string log = sample("made_args_dump_traps.log.txt");
  const auto yaml = [&](const std::string& more) {
    const Import import = import_text(with_arguments(log, more));
    return import.fragment ? to_yaml(*import.fragment) : "refused";
  };
  EXPECT_THAT(yaml("  position_embedding_type ......... rope\n  use_rotary_position_embeddings .. False\n"),
              HasSubstr("position: rope  # position_embedding_type\n"));
  EXPECT_THAT(yaml("  data_parallel_size .............. 16\n"), HasSubstr("data: 4  # what 64 GPUs leave\n"));
}

// Every dump has them.
TEST(MegatronOptions, SizesOfStateSpaceLayersSayNothingByDefault) {
  const std::string log = sample("made_args_dump_traps.log.txt");
  const auto messages = [&](const std::string& groups) {
    return import_text(with_arguments(
                           log,
                           "  mamba_state_dim ................. 128\n  mamba_head_dim .................. 64\n"
                           "  mamba_num_groups ................ " +
                               groups + "\n"))
        .messages;
  };
  EXPECT_THAT(messages("8"), Not(Contains(HasSubstr("mamba"))));
  EXPECT_THAT(messages("4"), Contains(HasSubstr("error: mamba_num_groups: is not supported: state-space")));
}

TEST(MegatronOptions, ShardingByFsdpIsNoneUnlessItIsChosen) {
  const std::string fsdp = "--use-megatron-fsdp --use-distributed-optimizer";
  EXPECT_EQ(
      import_text(job(fsdp)).at("parallelism.zero_stage"),
      import_text(job(fsdp + " --data-parallel-sharding-strategy no_shard")).at("parallelism.zero_stage"));
  EXPECT_EQ(import_text(job(fsdp + " --data-parallel-sharding-strategy optim")).at("parallelism.zero_stage"),
            "1");
}

TEST(MegatronOptions, ExpertsWithoutRanksOfTheirOwnLeaveTheDispatcherAside) {
  const Import import = import_text(
      job("--num-experts 8 --moe-token-dispatcher-type alltoall --moe-shared-expert-gate --moe-enable-deepep "
          "--moe-router-num-groups 4 --moe-pad-expert-input-to-capacity"));
  expect_aside(import, "one expert rank: --moe-token-dispatcher-type");
  expect_aside(import, "without shared experts: --moe-shared-expert-gate");
  expect_aside(import, "without the flex dispatcher: --moe-enable-deepep");
  expect_aside(import, "without moe_router_group_topk: --moe-router-num-groups");
  expect_aside(import, "without moe_expert_capacity_factor: --moe-pad-expert-input-to-capacity");
}

TEST(MegatronOptions, LatentAttentionLeavesGroupsOfQueriesAside) {
  const Import import =
      import_text(job("--multi-latent-attention --group-query-attention --num-query-groups 2"));
  EXPECT_EQ(import.at("model.kv_heads"), "absent");
  expect_aside(import, "latent attention has keys and values of every head: --group-query-attention");
  expect_aside(import, "no queries share keys and values: --num-query-groups");
}

TEST(MegatronOptions, ExpertsArePaddedToTheirCapacityWhereTheyAreToldTo) {
  const std::string capacity = "--num-experts 8 --moe-expert-capacity-factor 1.25";
  EXPECT_EQ(import_text(job(capacity)).at("model.experts.pad_to_capacity"), "absent");
  const Import padded = import_text(job(capacity + " --moe-pad-expert-input-to-capacity"));
  EXPECT_EQ(padded.at("model.experts.capacity_factor"), "1.25");
  EXPECT_EQ(padded.at("model.experts.pad_to_capacity"), "true");
  const Import none = import_text(job("--num-experts 8 --moe-expert-capacity-factor -1.0"));
  EXPECT_EQ(none.at("model.experts.capacity_factor"), "absent");
}

TEST(MegatronOptions, ModelsThatAreNoDecoderAreRefusedByTheirScript) {
  expect_refused(import_text("torchrun examples/bert/pretrain_bert.py " + job("")),
                 "examples/bert/pretrain_bert.py: is not supported: an encoder");
  expect_refused(import_text("pretrain_t5.py " + job("")),
                 "pretrain_t5.py: is not supported: a model of encoder and decoder");
  expect_refused(import_text("pretrain_mamba.py " + job("")),
                 "pretrain_mamba.py: is not supported: state-space layers");
  EXPECT_TRUE(import_text("pretrain_gpt.py " + job("")).fragment.has_value());
}

TEST(MegatronOptions, AnEncoderIsRefusedByItsTokenizerAndItsOptions) {
  expect_refused(import_text(job("--tokenizer-type BertWordPieceLowerCase")),
                 "--tokenizer-type: is not supported: the tokenizer of BERT, an encoder");
  expect_refused(import_text(job_dump("  tokenizer_type BertWordPieceCase\n")),
                 "tokenizer_type: is not supported");
  expect_refused(import_text(job("--bert-no-binary-head")),
                 "--bert-no-binary-head: is not supported: an option of BERT");
  expect_refused(import_text(job("--decoder-seq-length 128")), "--decoder-seq-length: is not supported");
  // Every dump has these.
  EXPECT_TRUE(import_text(job_dump("  bert_binary_head .. True\n  decoder_seq_length .. None\n")).fragment);
}

// Fused accumulation came with sequence parallelism, flash attention a year later.
TEST(MegatronOptions, OfThreeErasHaveTheirDefaults) {
  const auto fusion = [](const Import& i) { return i.at("options.gradient_accumulation_fusion"); };
  const Import old = import_text(job("--DDP-impl local"));
  EXPECT_EQ(fusion(old), "false");
  EXPECT_EQ(old.at("training.attention"), "unfused");
  for (const char* option :
       {"--sequence-parallel", "--recompute-activations", "--use-distributed-optimizer"}) {
    const Import middle = import_text(job("--DDP-impl local " + std::string(option)));
    EXPECT_EQ(fusion(middle), "absent") << option;
    EXPECT_EQ(middle.at("training.attention"), "unfused") << option;
    ASSERT_TRUE(middle.fragment.has_value());
    EXPECT_THAT(middle.fragment->assumed, Contains(HasSubstr("defaults of Megatron-LM of 2022: "))) << option;
  }
  const Import now = import_text(job("--DDP-impl local --sequence-parallel --swiglu"));
  EXPECT_EQ(fusion(now), "absent");
  EXPECT_EQ(now.at("training.attention"), "flash");
}

// A profile would guess the software from the GPU: that of 2021 on A100, PyTorch's for sharded weights.
TEST(MegatronOptions, OfAnAgeNameTheSoftwareOfThatAge) {
  const auto software = [](const std::string& more) { return import_text(job(more)).at("options.software"); };
  EXPECT_EQ(software(""), "megatron-core");
  EXPECT_EQ(software("--use-mcore-models"), "megatron-core");
  EXPECT_EQ(software("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params"),
            "megatron-core");
  EXPECT_EQ(software("--use-torch-fsdp2"), "fsdp2");
  EXPECT_EQ(software("--DDP-impl local"), "megatron-lm-2021");
  EXPECT_EQ(software("--override-lr-scheduler"), "megatron-lm-2021");
  EXPECT_EQ(software("--DDP-impl local --sequence-parallel"), "megatron-lm-2021");
  EXPECT_EQ(software("--use-legacy-models --swiglu"), "megatron-lm-2021");
  EXPECT_EQ(software("--deepspeed --zero-stage 1 --DDP-impl local"), "megatron-deepspeed-2021");
  EXPECT_EQ(software("--deepspeed --zero-stage 1 --use-flash-attn"), "megatron-lm-2021");
  EXPECT_EQ(software("--deepspeed --zero-stage 3 --use-flash-attn"), "megatron-deepspeed-2021");
}

// Core was an option at first and is the default since, where its switch has another name.
TEST(MegatronOptions, OfADumpTellWhetherItsLayersAreCores) {
  const auto software = [](const std::string& more) {
    return import_text(job_dump("  overlap_grad_reduce .. True\n" + more)).at("options.software");
  };
  EXPECT_EQ(software("  use_mcore_models .. False\n"), "megatron-lm-2021");
  EXPECT_EQ(software("  use_mcore_models .. True\n"), "megatron-core");
  EXPECT_EQ(software("  use_mcore_models .. False\n  use_legacy_models .. False\n"), "megatron-core");
  EXPECT_EQ(software("  use_legacy_models .. True\n"), "megatron-lm-2021");
}

// Optimizers of 16 bit on several replicas, but for ZeRO 3; beside a fused loss they share one mapping.
TEST(MegatronOptions, OfDeepSpeedCopyGradientsWhereThereAreReplicas) {
  const auto copies = [](const std::string& more) {
    return import_text(job(more)).at("options.memory.bucket_copies");
  };
  EXPECT_EQ(copies("--deepspeed --zero-stage 1 --cross-entropy-loss-fusion"), "true");
  EXPECT_EQ(copies("--deepspeed --zero-stage 3"), "absent");
  EXPECT_EQ(copies("--zero-stage 1 --cross-entropy-loss-fusion"), "absent");
  EXPECT_EQ(copies("--deepspeed --zero-stage 1 --tensor-model-parallel-size 4 "
                   "--pipeline-model-parallel-size 4"),
            "absent");
}

TEST(MegatronOptions, AnUnfusedSoftmaxMattersWhereAttentionIsUnfused) {
  const std::string off = " --no-masked-softmax-fusion";
  expect_said(import_text(job("--attention-backend unfused" + off)),
              "--no-masked-softmax-fusion: some kernels are not fused");
  const Import flash = import_text(job("--attention-backend flash" + off));
  EXPECT_THAT(flash.messages, Not(Contains(HasSubstr("softmax"))));
  expect_aside(flash, "of unfused attention: --no-masked-softmax-fusion");
}

TEST(MegatronOptions, NamesWhatIsNotFusedAndWhichLossIs) {
  const Import plain = import_text(job("--swiglu"));
  EXPECT_EQ(plain.at("options.unfused"), "absent");
  EXPECT_EQ(plain.at("options.memory"), "absent");
  const std::string off = " --no-bias-swiglu-fusion --no-bias-gelu-fusion --no-rope-fusion";
  const std::string rope = " --position-embedding-type rope";
  EXPECT_EQ(import_text(job("--swiglu" + rope + off)).at("options.unfused"), "swiglu rope");
  EXPECT_EQ(import_text(job("--disable-bias-linear" + off)).at("options.unfused"), "gelu");
  const std::string loss = "--cross-entropy-loss-fusion ";
  EXPECT_EQ(import_text(job(loss)).at("options.memory.compiled_loss"), "true");
  EXPECT_EQ(import_text(job(loss + "--cross-entropy-fusion-impl te")).at("options.memory.fused_loss"),
            "true");
  expect_aside(import_text(job("--cross-entropy-fusion-impl te")),
               "without cross_entropy_loss_fusion: --cross-entropy-fusion-impl");
}

TEST(MegatronOptions, SizesOfACheckpointAreNotRead) {
  expect_said(import_text(job("--use-checkpoint-args --load x")),
              "--use-checkpoint-args: the checkpoint's arguments count in place of those given");
  expect_aside(import_text(job("--use-checkpoint-opt_param-scheduler")),
               "learning rate, loss and optimizer constants: --use-checkpoint-opt_param-scheduler");
  // A log has what the checkpoint said.
  expect_aside(import_text(job_dump("  use_checkpoint_args True\n")),
               "the dump has what the checkpoint said: use_checkpoint_args");
}

TEST(MegatronOptions, AnOldNameThatContradictsTheNewOneIsRefused) {
  expect_refused(
      import_text(job("--model-parallel-size 4 --tensor-model-parallel-size 8")),
      "--model-parallel-size: says 4, and --tensor-model-parallel-size says 8\n  note: job:3: the newer name "
      "stands here\n  hint: keep --tensor-model-parallel-size");
  expect_refused(import_text(job("--batch-size 2")), "--batch-size: says 2, and --micro-batch-size says 1");
  EXPECT_EQ(
      import_text(job("--model-parallel-size 4 --tensor-model-parallel-size 4")).at("parallelism.tensor"),
      "4");
}

}  // namespace
}  // namespace stagecraft
