#include "formats/megatron.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/yaml.hpp"
#include "tests/formats/megatron_jobs.hpp"

namespace stagecraft {
namespace {

using namespace testing_megatron;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// System: 64 GPUs, GPT of 64 layers, tensor 4 x pipeline 16, trained with Megatron-LM of 2021.
// Expectations: derived by hand from the file. 50,257 tokens are padded to 99 * 512 = 50,688.
//   12 L h^2 + 13 L h + (V + s) h + 2h = 51,970,064,384 parameters.
TEST(MegatronImport, ReadsTheDumpOfAGptRun) {
  const Import gpt = import_sample("args_dump_gpt_64layer_tp4_pp16.log.txt");
  EXPECT_EQ(gpt.at("model.layers"), "64");
  EXPECT_EQ(gpt.at("model.hidden"), "8192");
  EXPECT_EQ(gpt.at("model.heads"), "32");
  EXPECT_EQ(gpt.at("model.ffn_hidden"), "32768");
  EXPECT_EQ(gpt.at("model.vocab"), "50688");
  EXPECT_EQ(gpt.at("cluster.nodes"), "8");
  EXPECT_EQ(gpt.at("parallelism.tensor"), "4");
  EXPECT_EQ(gpt.at("parallelism.pipeline"), "16");
  EXPECT_EQ(gpt.at("parallelism.data"), "1");
  EXPECT_EQ(gpt.at("parallelism.zero_stage"), "absent");  // zero_stage 1 is DeepSpeed's, which is off
  EXPECT_EQ(gpt.at("training.global_batch_size"), "1024");
  EXPECT_EQ(gpt.at("training.micro_batch_size"), "4");
  EXPECT_EQ(gpt.at("training.sequence_length"), "1024");
  EXPECT_EQ(gpt.at("training.precision"), "fp16");
  EXPECT_EQ(gpt.at("training.recompute"), "full");
  EXPECT_EQ(gpt.at("training.attention"), "unfused");
  EXPECT_EQ(gpt.at("overlap.pipeline"), "false");
  EXPECT_EQ(parameters(gpt), 51'970'064'384);
  ASSERT_TRUE(gpt.fragment.has_value());
  EXPECT_THAT(gpt.fragment->head, Contains("51,970,064,384 parameters (52.0 B)"));
  EXPECT_THAT(
      gpt.fragment->head,
      Contains("measured: median 125498.2 ms, mean 125570.9 ms over 10 of 12 iterations (the first two "
               "left out)"));
  EXPECT_EQ(gpt.messages.size(), 2u);  // the vocabulary and the machine are assumed
}

TEST(MegatronImport, ReadsTheDumpWithTraps) {
  const Import traps = import_sample("made_args_dump_traps.log.txt", {.node = "dgx-h100"});
  EXPECT_EQ(traps.at("parallelism.tensor"), "2");
  EXPECT_EQ(traps.at("parallelism.pipeline"), "4");
  EXPECT_EQ(traps.at("parallelism.context"), "2");
  EXPECT_EQ(traps.at("parallelism.data"), "4");
  EXPECT_EQ(traps.at("model.kv_heads"), "8");
  EXPECT_EQ(traps.at("model.experts"), "absent");  // moe_layer_freq alone makes none
  EXPECT_EQ(traps.at("cluster.node"), "dgx-h100");
  EXPECT_EQ(traps.at("training.attention"), "flash");  // context parallelism is newer than 2021
  ASSERT_TRUE(traps.fragment.has_value());
  EXPECT_THAT(traps.fragment->head,
              Contains("measured: 2 iterations in the log, all of them warm-up or of another batch"));
}

// An option that fills in what the job does not say contradicts a job that says otherwise.
TEST(MegatronImport, RefusesOptionsThatContradictTheJob) {
  const std::string log = sample("args_dump_gpt_64layer_tp4_pp16.log.txt");
  EXPECT_THAT(import_text(log, {.gpus = 128}).messages,
              Contains("job:152: error: --gpus: 128 is asked for, and the file says world_size 64\n"
                       "  hint: leave --gpus out: it is for files that do not say"));
  EXPECT_TRUE(import_text(log, {.gpus = 64}).fragment.has_value());
  EXPECT_THAT(import_text(job(""), {.gpus = 32}).messages,
              Contains(HasSubstr("job:2: error: --gpus: 32 is asked for, and the file says --nnodes 2 × "
                                 "--nproc-per-node 8")));
  EXPECT_TRUE(import_text(job(""), {.gpus = 16}).fragment.has_value());
  EXPECT_THAT(
      import_text(job(""), {.vocab = 2000}).messages,
      Contains(HasSubstr("job:2: error: --vocab: 2000 is asked for, and the file says --vocab-size 1000")));
  const std::string padded = log + "---- arguments ----\n  padded_vocab_size .... 50688\n";
  EXPECT_THAT(import_text(padded, {.vocab = 60'000}).messages,
              Contains(HasSubstr("--vocab: 60000 is asked for, and the file says padded_vocab_size 50688")));
  for (const int vocab : {50'257, 50'688})  // before and after padding to 99 * 512
    EXPECT_EQ(import_text(padded, {.vocab = vocab}).at("model.vocab"), "50688");
}

TEST(MegatronImport, SaysOfHowManyRunsTheFigureIs) {
  const std::string log = sample("args_dump_gpt_64layer_tp4_pp16.log.txt");
  const Import twice = import_text(log + log);
  ASSERT_TRUE(twice.fragment.has_value());
  EXPECT_THAT(twice.fragment->head,
              Contains("measured: median 125498.2 ms, mean 125570.9 ms over 20 of 24 iterations in 2 runs "
                       "(the first two of each left out)"));
}

TEST(MegatronImport, RefusesFewerGpusThanThePipelineNeeds) {
  const Import gpt3 = import_sample("train_gpt3_175b_distributed.args.txt", {.vocab = 50'257});
  EXPECT_FALSE(gpt3.fragment.has_value());
  EXPECT_THAT(gpt3.messages, Contains("job:30: error: --pipeline-model-parallel-size: 8 GPUs are fewer than "
                                      "tensor × pipeline = 128\n  hint: --nnodes × --nproc_per_node, a "
                                      "multiple of 128"));
  EXPECT_THAT(import_text(job("--context-parallel-size 3")).messages,
              Contains(HasSubstr("error: --context-parallel-size: 16 GPUs are no multiple of context = 3")));
  // Without definitions the launcher's numbers are variables.
  const Import enough =
      import_text(sample("train_gpt3_175b_distributed.args.txt"), {.gpus = 1024, .vocab = 50'257});
  EXPECT_EQ(enough.at("parallelism.data"), "8");
  EXPECT_EQ(enough.at("model.vocab"), "51200");
  EXPECT_EQ(enough.at("training.global_batch_size"), "1536");
  ASSERT_TRUE(enough.fragment.has_value());
  EXPECT_THAT(enough.fragment->assumed, Contains(HasSubstr("0:16 2.4B:320")));
}

// A number that is wrong is a number that is given, on a command line as in a file.
TEST(MegatronImport, AsksForTheGpusOnlyWhereNothingSaysThem) {
  const auto messages = [](const std::vector<std::string>& launcher) {
    std::vector<std::string> words = {"--num-layers",          "8", "--hidden-size", "64",
                                      "--num-attention-heads", "4", "--seq-length",  "32",
                                      "--micro-batch-size",    "1"};
    words.insert(words.begin(), launcher.begin(), launcher.end());
    Diagnostics diagnostics;
    std::string all;
    if (const auto arguments = read_megatron_words(words, {}, diagnostics))
      (void)import_megatron(*arguments, {.vocab = 1000, .node = "dgx-h100"}, diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.items()) all += render(diagnostic) + '\n';
    return all;
  };
  const std::string ask = "nothing says how many GPUs the job has";
  const std::string wrong = messages({"--nnodes", "two", "--nproc-per-node", "8"});
  EXPECT_THAT(wrong, HasSubstr("--nnodes: 'two' is no whole number"));
  EXPECT_THAT(wrong, Not(HasSubstr(ask)));
  EXPECT_THAT(messages({"--nnodes", "2"}), HasSubstr(ask));
  EXPECT_THAT(messages({"--nnodes", "None", "--nproc-per-node", "8"}), HasSubstr(ask));
}

TEST(MegatronImport, RefusesABatchThatDoesNotSplit) {
  const std::string whole = job(""), batch = "--global-batch-size 64";
  for (const auto& [samples, hint] : {std::pair("63", "48 or 64 would"), {"8", "16 would"}}) {
    std::string odd = whole;
    odd.replace(odd.find(batch), batch.size(), std::string("--global-batch-size ") + samples);
    const Import import = import_text(odd);
    EXPECT_FALSE(import.fragment.has_value());
    EXPECT_THAT(
        import.messages,
        Contains(HasSubstr(std::string("job:2: error: --global-batch-size: ") + samples +
                           " samples do not split over data 16 × micro_batch_size 1 = 16\n  hint: " + hint)));
  }
}

// System: the five rows of sc21_scenarios.tsv, with the common options of 2021.
// Expectations: parameters as derived there, 12Lh^2 + 13Lh + (V + s)h, and 2h of the last norm.
TEST(MegatronImport, ReadsTheJobsOfTheSc21Paper) {
  struct Row {
    std::string data, chunks;
    std::int64_t parameters;
  };
  const std::vector<Row> expected = {{"32", "absent", 1'652'226'048},
                                     {"32", "absent", 7'467'778'048},
                                     {"32", "absent", 39'096'025'088},
                                     {"24", "2", 145'622'237'184},
                                     {"9", "3", 529'600'778'240}};
  std::istringstream rows(sample("sc21_scenarios.tsv"));
  std::string line;
  std::getline(rows, line);
  for (const Row& row : expected) {
    ASSERT_TRUE(std::getline(rows, line));
    std::istringstream cells(line);
    std::string name, extra;
    ShellDefines defines;
    cells >> name;
    for (const char* column : {"TP", "PP", "MBS", "GBS", "NLS", "HS", "NAH", "DDP", "NNODES"})
      cells >> defines[column];
    std::getline(cells, extra);
    SCOPED_TRACE(name);
    const Import import =
        import_text(sample("sc21_common.args.txt") + extra + "\n--nnodes $NNODES --nproc-per-node 8\n",
                    {.vocab = 51'200, .node = "dgx-a100-80gb"}, defines);
    EXPECT_EQ(import.at("parallelism.data"), row.data);
    EXPECT_EQ(import.at("parallelism.virtual_stages"), row.chunks);
    EXPECT_EQ(import.at("cluster.nodes"), defines["NNODES"]);
    EXPECT_EQ(import.at("training.recompute"), "full");
    EXPECT_EQ(import.at("training.attention"), "unfused");
    EXPECT_EQ(import.at("overlap.gradients"), defines["DDP"] == "torch" ? "true" : "false");
    const std::int64_t hidden = std::stoll(defines["HS"]);
    EXPECT_EQ(parameters(import) - 2 * hidden, row.parameters);
  }
}

TEST(MegatronImport, ReadsNamesOfThePastWithAWarning) {
  const Import old = import_text(
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --max-position-embeddings 32 --seq-length 32\n"
      "--batch-size 2 --model-parallel-size 4 --checkpoint-activations --warmup 0.01 --fp16 --vocab-size "
      "1000\n"
      "--nnodes 1 --nproc_per_node 8\n");
  EXPECT_EQ(old.at("parallelism.tensor"), "4");
  EXPECT_EQ(old.at("training.micro_batch_size"), "2");
  EXPECT_EQ(old.at("training.recompute"), "full");
  EXPECT_EQ(old.at("training.attention"), "unfused");
  EXPECT_THAT(old.messages, Contains("job:2: warning: --model-parallel-size: is a name of the past, read as "
                                     "--tensor-model-parallel-size"));
  EXPECT_THAT(old.messages,
              Contains("job:2: warning: --batch-size: is a name of the past, read as --micro-batch-size"));
}

TEST(MegatronImport, NamesEachVariableThatNobodyDefined) {
  const Import import =
      import_text(job("--tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP}\n"
                      "--context-parallel-size $(echo 2) --data-path $DATA_PATH\n"));
  EXPECT_FALSE(import.fragment.has_value());
  EXPECT_THAT(import.messages,
              Contains("job:3: error: --tensor-model-parallel-size: the value of $TP is not known\n"
                       "  hint: --define TP=VALUE"));
  EXPECT_THAT(import.messages, Contains(HasSubstr("the value of $PP is not known")));
  EXPECT_THAT(import.messages, Contains(HasSubstr("no command is run")));
  EXPECT_THAT(import.messages, Not(Contains(HasSubstr("DATA_PATH"))));  // it changes nothing
}

TEST(MegatronImport, WarnsOfUnknownOptionsAndOfThoseItCannotModel) {
  const Import import =
      import_text(job("--sequence-paralel --use-nccl-ub --wandb-project x --main-params-dtype fp32\n"));
  ASSERT_TRUE(import.fragment.has_value());
  EXPECT_THAT(import.messages,
              Contains("job:3: warning: --sequence-paralel: is not known here, and not read\n"
                       "  hint: did you mean --sequence-parallel?"));
  EXPECT_THAT(import.messages, Contains(HasSubstr("--use-nccl-ub: is not modelled")));
  EXPECT_THAT(import.fragment->ignored, Contains("logging and profiling: --wandb-project"));
  EXPECT_THAT(import.fragment->ignored, Contains("as is modelled: --main-params-dtype"));
}

TEST(MegatronImport, KnowsWhichOptionsItCannotModelAndWhichChangeNothing) {
  const Import import =
      import_text(job("--overlap-p2p-communication-warmup-flush --attention-output-gate\n"
                      "--ddp-num-buckets 4 --wgrad-deferral-limit 2 --offload-modules attn_norm\n"));
  ASSERT_TRUE(import.fragment.has_value());
  for (const char* option :
       {"--overlap-p2p-communication-warmup-flush", "--attention-output-gate", "--ddp-num-buckets"})
    EXPECT_THAT(import.messages, Contains(HasSubstr(std::string(option) + ": is not modelled: ")));
  EXPECT_THAT(import.messages, Not(Contains(HasSubstr("is not known here"))));
  EXPECT_THAT(import.fragment->ignored, Contains("of defer_embedding_wgrad_compute: --wgrad-deferral-limit"));
  EXPECT_THAT(import.fragment->ignored, Contains("of fine_grained_activation_offloading: --offload-modules"));
}

TEST(MegatronImport, ReadsTheWidthOfTheMoments) {
  const std::string aware = "--bf16 --use-precision-aware-optimizer --main-grads-dtype bf16 ";
  const Import both = import_text(job(aware + "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"));
  EXPECT_EQ(both.at("training.gradient_dtype"), "bf16");
  EXPECT_EQ(both.at("training.moment_dtype"), "bf16");
  EXPECT_EQ(
      import_text(job(aware + "--exp-avg-dtype fp8 --exp-avg-sq-dtype fp8")).at("training.moment_dtype"),
      "fp8");
  EXPECT_EQ(both.at("training.master_remainders"), "absent");  // the default beside narrow moments
  EXPECT_THAT(both.fragment->ignored, Not(Contains(HasSubstr("--use-precision-aware-optimizer"))));
  const Import wide = import_text(job(aware + "--exp-avg-dtype fp32 --exp-avg-sq-dtype fp32"));
  EXPECT_EQ(wide.at("training.moment_dtype"), "absent");
  EXPECT_EQ(wide.at("training.master_remainders"), "true");
  const Import mixed = import_text(job(aware + "--exp-avg-dtype fp16 --exp-avg-sq-dtype fp8"));
  EXPECT_EQ(mixed.at("training.moment_dtype"), "fp16");
  EXPECT_THAT(mixed.fragment->assumed, Contains("the moments differ (fp16 and fp8): both are read as fp16"));
}

TEST(MegatronImport, RefusesOtherModelsByName) {
  const Import import = import_text(job("--hybrid-override-pattern M*M- --hybrid-context-parallel\n"));
  EXPECT_FALSE(import.fragment.has_value());
  EXPECT_THAT(import.messages, Contains(HasSubstr("state-space layers")));
  EXPECT_THAT(import.messages, Contains(HasSubstr("context ranks that differ by sample")));
}

TEST(MegatronImport, SplitsThePipelineAsItIsTold) {
  const std::string base = "--pipeline-model-parallel-size 4 ";
  EXPECT_EQ(import_text(job(base + "--num-virtual-stages-per-pipeline-rank 2")).at("schedule"),
            "interleaved-1f1b");
  EXPECT_EQ(import_text(job(base)).at("schedule"), "1f1b");
  EXPECT_EQ(
      import_text(job(base + "--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 1"))
          .at("parallelism.stage_layers"),
      "1 3 3 1");
  EXPECT_EQ(
      import_text(job(base + "--pipeline-model-parallel-layout E|(t|)*6,ttL")).at("parallelism.stage_layers"),
      "0 1 1 1 1 1 1 2");
  const Import predicts =
      import_text(job(base + "--mtp-num-layers 1 --pipeline-model-parallel-layout Ett|(t|)*4,tt|m|L"));
  EXPECT_EQ(predicts.at("parallelism.stage_layers"), "2 1 1 1 1 2 0 0") << "DeepSeek-V3's ends alike";
  EXPECT_THAT(predicts.messages, Not(Contains(HasSubstr("multi-token"))));
  EXPECT_EQ(import_text(job(base + "--decoder-first-pipeline-num-layers 1")).at("parallelism.stage_layers"),
            "refused");  // 7 layers on 3 ranks
  EXPECT_THAT(import_text(job(base + "--pipeline-model-parallel-layout Ettt|ttttt||L")).messages,
              Contains(HasSubstr("a stage between the first and the last without a decoder layer")));
  const std::string layout = base + "--pipeline-model-parallel-layout E|(t|)*6,ttL ";
  const Import twice = import_text(job(layout + "--num-virtual-stages-per-pipeline-rank 2"));
  EXPECT_EQ(twice.at("parallelism.virtual_stages"), "2");
  EXPECT_THAT(twice.fragment->ignored, Not(Contains(HasSubstr("without a pipeline"))));
  EXPECT_THAT(import_text(job(layout + "--num-virtual-stages-per-pipeline-rank 4")).messages,
              Contains(HasSubstr("says 4, and the layout has 2 stages a rank")));
  for (const char* option :
       {"--microbatch-group-size-per-vp-stage", "--microbatch-group-size-per-virtual-pipeline-stage"}) {
    const Import group =
        import_text(job(base + "--num-layers-per-virtual-pipeline-stage 1 " + option + " 8"));
    EXPECT_EQ(group.at("parallelism.virtual_stages"), "2") << option;
    EXPECT_EQ(group.at("schedule.micro_batch_group"), "8") << option;
  }
}

TEST(MegatronImport, SaysWhatOverlaps) {
  const Import none = import_text(job("--tensor-model-parallel-size 2"));
  EXPECT_EQ(none.at("overlap.gradients"), "false");
  EXPECT_EQ(none.at("overlap.tensor"), "absent") << "nothing could, without sequence parallelism";
  EXPECT_EQ(import_text(job("--tensor-model-parallel-size 2 --sequence-parallel")).at("overlap.tensor"),
            "false");
  EXPECT_EQ(none.at("overlap.pipeline"), "absent");
  const Import all =
      import_text(job("--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather\n"
                      "--tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap\n"
                      "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2\n"));
  for (const char* key : {"gradients", "parameters", "tensor", "pipeline"})
    EXPECT_EQ(all.at(std::string("overlap.") + key), "true") << key;
}

TEST(MegatronImport, TakesPartsOfTheModelThatStayOnTheHost) {
  const Import import =
      import_text(job("--optimizer-cpu-offload --optimizer-offload-fraction 0.5\n"
                      "--cpu-offloading --cpu-offloading-num-layers 2\n"));
  EXPECT_EQ(import.at("offload.optimizer"), "0.5");
  EXPECT_EQ(import.at("offload.activations"), "0.25");
}

TEST(MegatronImport, AsksForWhatNothingSays) {
  const Import import = import_text("--num-layers 8 --hidden-size 64");
  EXPECT_FALSE(import.fragment.has_value());
  for (const char* option : {"--num-attention-heads", "--seq-length", "--micro-batch-size"})
    EXPECT_THAT(import.messages,
                Contains(std::string("job: error: ") + option + ": is required, but not given"));
  EXPECT_THAT(import.messages, Contains(HasSubstr("how many GPUs")));
}

// The sequence is the model's and the training's; the size of the feed-forward block is asked for twice.
TEST(MegatronImport, RefusesAnArgumentOnce) {
  const Import import = import_text(
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --ffn-hidden-size 1x --micro-batch-size 1\n");
  for (const std::string message : {"job:1: error: --ffn-hidden-size: '1x' is no whole number",
                                    "job: error: --seq-length: is required, but not given"})
    EXPECT_EQ(std::ranges::count(import.messages, message), 1) << message;
}

// What is printed is YAML that reads back to the same tree, whatever stood in the file.
TEST(MegatronImport, WritesYamlThatReadsBack) {
  for (const char* name : {"args_dump_gpt_64layer_tp4_pp16.log.txt", "train_llama3_8b_h100_fp8.args.txt"}) {
    const Import import = import_sample(name);
    ASSERT_TRUE(import.fragment.has_value());
    Diagnostics diagnostics;
    const auto tree = parse_yaml(to_yaml(*import.fragment), name, diagnostics);
    EXPECT_THAT(diagnostics.items(), IsEmpty());
    ASSERT_TRUE(tree.has_value());
    EXPECT_EQ(tree->find("model")->find("layers")->text, import.at("model.layers"));
  }
}

}  // namespace
}  // namespace stagecraft
