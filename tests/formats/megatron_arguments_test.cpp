#include "formats/megatron_arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "formats/megatron_flags.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string sample(const std::string& name) {
  return content_of(STAGECRAFT_SOURCE_DIR "/tests/data/megatron/" + name);
}

MegatronArguments read(std::string_view text, const ShellDefines& defines = {}) {
  Diagnostics diagnostics;
  auto arguments = read_megatron_text(text, "job", defines, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.items()) ADD_FAILURE() << render(diagnostic);
  return arguments.value_or(MegatronArguments{});
}

std::string value(const MegatronArguments& arguments, std::string_view name) {
  const MegatronArgument* item = arguments.find(name);
  if (item == nullptr) return "absent";
  return item->values.empty() ? "none" : item->values.size() == 1 ? item->values.front() : "list";
}

std::string refusal(std::string_view text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_megatron_text(text, "job", {}, diagnostics).has_value());
  return diagnostics.items().empty() ? "" : render(diagnostics.items().front());
}

// Counts and mean were taken from the file with other tools.
TEST(MegatronDump, OfTheGptRunHasItsArgumentsAndIterations) {
  const MegatronArguments dump = read(sample("args_dump_gpt_64layer_tp4_pp16.log.txt"));
  EXPECT_EQ(dump.door, MegatronArguments::Door::kDump);
  EXPECT_EQ(dump.items.size(), 152u);
  EXPECT_EQ(value(dump, "num_layers"), "64");
  EXPECT_EQ(value(dump, "params_dtype"), "torch.float16");
  EXPECT_EQ(value(dump, "adam_eps"), "1e-08");
  EXPECT_EQ(value(dump, "bert_load"), "none");
  EXPECT_EQ(value(dump, "retriever_report_topk_accuracies"), "none");
  EXPECT_EQ(dump.find("world_size")->where.line, 152);
  ASSERT_EQ(dump.iterations.size(), 12u);
  const std::vector<double> times = steady_iterations_ms(dump, 1024);
  ASSERT_EQ(times.size(), 10u);
  EXPECT_NEAR(std::accumulate(times.begin(), times.end(), 0.0) / 10, 125'570.9, 0.05);
}

TEST(MegatronDump, SurvivesPrefixesLongNamesListsAndEmptyValues) {
  const MegatronArguments dump = read(sample("made_args_dump_traps.log.txt"));
  EXPECT_EQ(dump.items.size(), 28u);
  EXPECT_EQ(value(dump, "pipeline_model_parallel_comm_backend_for_small_groups"), "none");
  EXPECT_EQ(value(dump, "tokenizer_model"), "none");
  EXPECT_THAT(dump.find("moe_layer_freq")->values, ElementsAre("0", "1", "1", "1"));
  EXPECT_THAT(dump.find("recompute_modules")->values, ElementsAre("core_attn", "mlp"));
  ASSERT_EQ(dump.iterations.size(), 2u);
  EXPECT_EQ(dump.iterations[1].milliseconds, 5000.2);
  EXPECT_EQ(dump.iterations[1].global_batch_size, 128);
  EXPECT_THAT(steady_iterations_ms(dump, 128), IsEmpty());
}

TEST(MegatronDump, IsReadBehindEveryPrefixOfALauncher) {
  for (const std::string prefix :
       {"", "0: ", "12:", "[1,0]<stdout>:", "[default0]:", "[2026-01-02 03:04:05] "}) {
    SCOPED_TRACE(prefix);
    const MegatronArguments dump =
        read(prefix + "------------------------ arguments ------------------------\r\n" + prefix +
             "  lr .............................................. .001\r\n" + prefix +
             "  num_layers ...................................... 4\r\n" + prefix +
             "-------------------- end of arguments ---------------------\r\n");
    EXPECT_EQ(dump.items.size(), 2u);
    EXPECT_EQ(value(dump, "num_layers"), "4");
    EXPECT_EQ(value(dump, "lr"), ".001");
  }
}

TEST(MegatronDump, WithoutItsEndIsReadWithAWarning) {
  Diagnostics diagnostics;
  const auto dump = read_megatron_text("--- arguments ---\n  num_layers .... 4\n", "job", {}, diagnostics);
  ASSERT_TRUE(dump.has_value());
  EXPECT_EQ(dump->items.size(), 1u);
  ASSERT_EQ(diagnostics.items().size(), 1u);
  EXPECT_EQ(diagnostics.items()[0].code, "cut-off");
}

// A block of these lines, and iterations of these times.
std::string run_of(const std::string& block, const std::vector<int>& times) {
  std::string log = "---- arguments ----\n" + block + "---- end of arguments ----\n";
  for (const int time : times)
    log += " iteration 1/ 9 | elapsed time per iteration (ms): " + std::to_string(time) + " |\n";
  return log;
}

TEST(MegatronDump, EachRunOfARestartedJobWarmsUp) {
  const std::string block = "  hidden_size .... 64\n  consumed_train_samples .... ";
  const MegatronArguments dump =
      read(run_of(block + "0\n", {900, 500, 100, 101}) + run_of(block + "8\n", {800, 400, 102}));
  EXPECT_EQ(value(dump, "hidden_size"), "64");
  EXPECT_THAT(steady_iterations_ms(dump, std::nullopt), ElementsAre(100, 101, 102));
}

// BigScience's fork prints seconds.
TEST(MegatronDump, IterationsInSecondsAreMeasurements) {
  std::string log = "---- arguments ----\n  hidden_size .... 64\n---- end of arguments ----\n";
  for (const char* time : {"300.0", "200.0", "105.3"})
    log += " iteration 1/ 9 | elapsed time per iteration (s): " + std::string(time) + " | loss: 1 |\n";
  EXPECT_THAT(steady_iterations_ms(read(log), std::nullopt), ElementsAre(105'300));
}

TEST(MegatronDump, AnArgumentWithTwoValuesIsRefusedWithBothLines) {
  const std::string said =
      "error: hidden_size: is 8192 here, and 4096 before\n"
      "  note: job:2: first given here\n"
      "  hint: one job a log: cut it before the other's arguments";
  EXPECT_EQ(refusal(run_of("  hidden_size .... 4096\n  hidden_size .... 8192\n", {})), "job:3: " + said);
  EXPECT_EQ(refusal(run_of("  hidden_size .... 4096\n", {7, 8, 9}) + run_of("  hidden_size .... 8192\n", {})),
            "job:8: " + said);
}

TEST(MegatronArgv, TakesOptionsAsAShellWould) {
  const MegatronArguments argv = read(
      "# a comment\n"
      "--num-layers 4 --hidden_size=64 \\\n"
      "  --swiglu --- --min-lr -1e-5 # another\n"
      "--split '99,1,0' --rampup-batch-size 16 \"16\" 1000\n"
      "--DDP-impl local --disable-bias-linear --fp8-format hybrid\n");
  EXPECT_EQ(argv.door, MegatronArguments::Door::kArgv);
  EXPECT_EQ(value(argv, "num_layers"), "4");
  EXPECT_EQ(value(argv, "hidden_size"), "64");
  EXPECT_EQ(value(argv, "swiglu"), "---");  // no option: a value
  EXPECT_EQ(value(argv, "min_lr"), "-1e-5");
  EXPECT_EQ(value(argv, "split"), "99,1,0");
  EXPECT_THAT(argv.find("rampup_batch_size")->values, ElementsAre("16", "16", "1000"));
  EXPECT_EQ(value(argv, "ddp_impl"), "local");
  EXPECT_EQ(value(argv, "add_bias_linear"), "False");
  EXPECT_EQ(argv.find("add_bias_linear")->spelled, "--disable-bias-linear");
  EXPECT_EQ(value(argv, "fp8"), "hybrid");
  EXPECT_EQ(argv.find("ddp_impl")->where, (SourceLocation{"job", 5, 0}));
}

TEST(MegatronArgv, PutsDefinitionsInPlaceOfVariables) {
  const MegatronArguments argv =
      read("--tp $TP --name \"a${TP}b\" --raw '$TP' $MORE", {{"TP", "8"}, {"MORE", "--bf16 --pp 2"}});
  EXPECT_EQ(value(argv, "tp"), "8");
  EXPECT_EQ(value(argv, "name"), "a8b");
  EXPECT_EQ(value(argv, "raw"), "$TP");
  EXPECT_EQ(value(argv, "bf16"), "none");
  EXPECT_EQ(value(argv, "pp"), "2");
  for (const MegatronArgument& item : argv.items) EXPECT_THAT(item.unexpanded, IsEmpty()) << item.name;
}

// As an unquoted variable of a shell, whatever blanks and line ends are in it.
TEST(MegatronArgv, SplitsADefinitionOfSeveralLines) {
  const MegatronArguments argv = read("$MORE\n--lr 1", {{"MORE", "--bf16\n--pp 2"}});
  EXPECT_EQ(value(argv, "bf16"), "none");
  EXPECT_EQ(value(argv, "pp"), "2");
  EXPECT_EQ(argv.find("lr")->where.line, 2);
}

// The form of Megatron-LM's own examples: only the launch counts, with what the script has set before it.
TEST(MegatronScript, HasTheOptionsOfItsArrays) {
  const MegatronArguments argv = read(
      "#!/bin/bash\n"
      "export TP=4; LAYERS=$((2*TP))\n"
      "mkdir -p $1 && cd $1\n"
      "MODEL_ARGS=(\n"
      "    --hidden-size 64 # (any)\n"
      "    --split \"9 1\" --load $1\n"
      ")\n"
      "MODEL_ARGS+=(--tp ${TP})\n"
      "CMD=\"torchrun --nnodes 2 pretrain_gpt.py\"\n"
      "$CMD \"${MODEL_ARGS[@]}\" \\\n"
      "  --num-layers $LAYERS --seq-length 32 2>&1 | tee log.txt\n");
  EXPECT_EQ(argv.program->file, "pretrain_gpt.py");
  EXPECT_EQ(value(argv, "nnodes"), "2");
  EXPECT_EQ(value(argv, "hidden_size"), "64");
  EXPECT_EQ(argv.find("hidden_size")->where.line, 5);
  EXPECT_EQ(value(argv, "split"), "9 1");
  EXPECT_EQ(value(argv, "tp"), "4");
  EXPECT_EQ(value(argv, "seq_length"), "32");
  EXPECT_THAT(argv.find("load")->unexpanded, ElementsAre("1"));
  EXPECT_THAT(argv.find("num_layers")->unexpanded, ElementsAre("LAYERS"));
  EXPECT_EQ(argv.find("p"), nullptr);
}

// The form of Megatron-DeepSpeed: options in a text, of which a part is not known.
TEST(MegatronScript, HasTheOptionsOfItsTexts) {
  const std::string script =
      "TP=2\n"
      "options=\" \\\n"
      "  --tp $TP --load $HOME \\\n"
      "  --bf16\"\n"
      "options=\"${options} --swiglu\"\n"
      "deepspeed pretrain_gpt.py ${options}\n";
  const MegatronArguments argv = read(script);
  EXPECT_EQ(value(argv, "tp"), "2");
  EXPECT_EQ(value(argv, "bf16"), "none");
  EXPECT_EQ(value(argv, "swiglu"), "none");
  EXPECT_THAT(argv.find("load")->unexpanded, ElementsAre("HOME"));
  EXPECT_EQ(value(read(script, {{"TP", "8"}}), "tp"), "8") << "what the user defines counts";
}

TEST(MegatronScript, WarnsOfOptionsThatMayHideBehindAValue) {
  Diagnostics said;
  (void)read_megatron_text("--data-path 1 $A 2 $B --save $HOME/x $MORE --num-layers 8", "job", {}, said);
  ASSERT_EQ(said.items().size(), 1u);
  EXPECT_NE(render(said.items()[0]).find("warning: $MORE may hold any option"), std::string::npos);
}

// Each line doubles the text four times over.
TEST(MegatronScript, DoesNotGrowBeyondMeasure) {
  std::string script = "A=--bf16\n";
  for (int i = 0; i < 60; ++i) script += "A=\"$A $A $A $A\"\n";
  EXPECT_EQ(value(read(script + "pretrain_gpt.py --num-layers 4 --bf16 $A\n"), "num_layers"), "4");
}

// Each line would double the notes of what is not known in it.
TEST(MegatronScript, NotesOnceWhatIsNotKnown) {
  std::string script = "A=\" --num-layers 4 --load $D/1 --save $D/2 --exit-interval $DIR\"\n";
  for (int i = 0; i < 60; ++i) script += "A=\"${A} --bf16\"\n";
  const MegatronArguments argv = read(script + "pretrain_gpt.py $A\n");
  EXPECT_EQ(value(argv, "num_layers"), "4");
  EXPECT_THAT(argv.find("save")->unexpanded, ElementsAre("D"));
  EXPECT_THAT(argv.find("exit_interval")->unexpanded, ElementsAre("DIR"));
}

// Nothing is run, so nobody knows which way it goes.
TEST(MegatronScript, DoesNotKnowWhatABranchSets) {
  const std::string launch = "torchrun pretrain_gpt.py --lr $ARGS --tp $TP\n";
  for (const char* branch : {"if [ -n \"$X\" ]; then\n  ARGS=(--bf16)\nfi\n", "[[ $X ]] && ARGS+=(--bf16)\n",
                             "for x in 1 2; do ARGS=\"--bf16\"; done\n"}) {
    const MegatronArguments argv = read("TP=2\nARGS=(--fp16)\n" + std::string(branch) + launch);
    EXPECT_THAT(argv.find("lr")->unexpanded, ElementsAre("ARGS")) << branch;
    EXPECT_EQ(value(argv, "tp"), "2") << branch;
  }
}

// What a script that does this gives its launch; "unknown": the user is asked for it.
std::string tensor_after(const std::string& lines, const std::string& asked = "$TP") {
  Diagnostics diagnostics;
  const auto arguments = read_megatron_text(lines + "\ntorchrun pretrain_gpt.py --num-layers 2 --tp " + asked,
                                            "job", {}, diagnostics);
  EXPECT_TRUE(arguments.has_value()) << lines;
  if (!arguments || arguments->find("tp") == nullptr) return "absent";
  return arguments->find("tp")->unexpanded.empty() ? value(*arguments, "tp") : "unknown";
}

TEST(MegatronScript, DoesNotKnowWhatItDoesNotEvaluate) {
  for (const char* lines : {"if a; then\n echo\nelse if b; then\n echo\nfi\nfi\nif c; then\n TP=8\nfi",
                            "for i in 1 2; do if a; then echo; fi; done\nif c; then\n TP=8\nfi",
                            "case $X in\n big) TP=8 ;;\nesac",
                            "case $X in (a|b) TP=8;; esac",
                            "declare -i TP=8\nTP+=4",
                            "read TP < file",
                            "read -r TP < <(cat file)",
                            "let TP=8",
                            "((TP=8))",
                            "for ((TP=1; TP<8; TP++)); do echo; done",
                            "X=$((TP*=2))",
                            "TP[0]=8",
                            "unset TP",
                            "printf -v TP 8",
                            "for TP in 1 2; do echo; done",
                            "f() {\n TP=8\n}\nf",
                            "function f {\n TP=8\n}\nTP=2\nf",
                            "f() { TP=8; }; TP=2; f",
                            "a &&\n TP=8",
                            "( TP=8",
                            "TP=`a b`",
                            "X=$(a ')')\nTP=$X"})
    EXPECT_EQ(tensor_after(lines), "unknown") << lines;
  for (const char* asked : {"${TP%6}", "${TP:+8}", "${#TP}", "${TP", "${T[1]}", "${T[$i]}", "${T[@]:1}"})
    EXPECT_EQ(tensor_after("TP=4\nT=($X 8)", asked), "unknown") << asked;
}

// A function or a here-document that is not seen as one would set it for certain.
TEST(MegatronScript, DoesNotKnowWhatIsSetMoreThanOnce) {
  for (const char* lines : {"TP=4\nTP=8", "TP=4\nf ( ) {\nTP=8\n}", "TP=4\nf(){\nTP=8\n}\nTP=2\nf",
                            "TP=4\nfunction f(){ TP=8; }", "TP=4\nunset TP", "TP=(4)\nTP[0]=8"})
    EXPECT_EQ(tensor_after(lines), "unknown") << lines;
  EXPECT_EQ(tensor_after("TP=4\nif (( TP > 8 )); then exit; fi\n(( TP <= 8 ))"), "4");
  EXPECT_EQ(value(read("A=\"--bf16 --lr 1\"\nA=\"$A --tp 4\"\npretrain_gpt.py $A"), "tp"), "4");
}

// Of a command that writes its output somewhere, all options are read.
TEST(MegatronScript, LeavesOutRedirectionsAlone) {
  for (const char* written : {"2>err.log", "> log", "2>&1", "--wandb-exp-name '>big'", "<in"})
    EXPECT_EQ(
        value(read("TP=4\ntorchrun pretrain_gpt.py --num-layers 2 " + std::string(written) + " --tp $TP"),
              "tp"),
        "4")
        << written;
  EXPECT_EQ(tensor_after("cat>hosts<<EOF\nTP=2\nEOF\necho \"<<END\"\nTP=4"), "4");
}

TEST(MegatronScript, SaysWhatItTakesInUnread) {
  for (const char* line : {"source env.sh", "command . env.sh", "eval \"$(cat env)\""}) {
    Diagnostics said;
    (void)read_megatron_text("TP=4\n" + std::string(line) + "\npretrain_gpt.py --tp $TP", "job", {}, said);
    ASSERT_EQ(said.items().size(), 1u) << line;
    EXPECT_EQ(said.items()[0].code, "not-read");
  }
}

// The first time it is 4, another time 8: it is set twice.
TEST(MegatronScript, DoesNotKnowWhatALoopOrAFunctionSetsFurtherDown) {
  const std::string launch = "torchrun pretrain_gpt.py --tp $TP";
  for (const std::string& script :
       {"while a; do\n" + launch + "\nTP=8\ndone\n", "f() { " + launch + "; }\nTP=8\nf\n"})
    EXPECT_THAT(read("TP=4\n" + script).find("tp")->unexpanded, ElementsAre("TP")) << script;
  EXPECT_EQ(value(read("TP=4\nf() {\n" + launch + "\n}\nf\n"), "tp"), "4");
}

TEST(MegatronScript, KnowsWhatItSetsForCertain) {
  for (const char* lines :
       {"TP=8;PP=4;", "export -x TP=8", "a && b\nTP=8", "if a; then b; fi; TP=8", "TP=8 # fi", "TP=8 2>&1",
        "cat <<EOF\nTP=2\nit's\nEOF\nTP=8", "X=$(\nTP=2\necho)\nTP=8", "case $X in a) PP=2;; esac; TP=8"})
    EXPECT_EQ(tensor_after(lines), "8") << lines;
  for (const char* asked : {"${T[1]}", "${TP:-8}", "${E:-8}"})
    EXPECT_EQ(tensor_after("T=(1 8)\nTP=8\nE=", asked).substr(0, 1), "8") << asked;
  EXPECT_EQ(tensor_after("X=\"2 --bf16\"\nY=$X\nZ=\"${Y[*]} --pp 2\"", "$Z"), "2");
}

TEST(MegatronScript, TakesADefaultOnceWhereItIsSet) {
  Diagnostics said;
  const auto argv =
      read_megatron_text(": ${TP:=8}\nPP=$TP\npretrain_gpt.py --tp $TP --pp $PP", "job", {}, said);
  EXPECT_EQ(value(*argv, "tp") + value(*argv, "pp"), "88");
  ASSERT_EQ(said.items().size(), 1u);
  EXPECT_EQ(said.items()[0].code, "assumed");
}

TEST(MegatronScript, AsksForAnArrayByItsName) {
  const std::string script =
      "A=(--bf16)\nif x; then A+=(--fp8); fi\npretrain_gpt.py --vocab-size 8 \"${A[@]}\" --lr 1\n";
  EXPECT_NE(refusal(script).find("error: $A may hold any option"), std::string::npos);
  const MegatronArguments argv = read(script, {{"A", "--fp16 --split '9 1'"}});
  EXPECT_EQ(value(argv, "vocab_size"), "8");
  EXPECT_EQ(value(argv, "fp16"), "none");
  EXPECT_EQ(value(argv, "split"), "9 1");
  EXPECT_EQ(argv.find("split")->where.line, 3);
}

// A longer command is no launch of Megatron-LM, another is.
TEST(MegatronScript, ReadsTheLaunchWithMostOptions) {
  const std::string aside = "X=1\npython prepare.py --input a b c d e f g h i j k\n";
  const std::string launch = "torchrun pretrain_gpt.py --num-layers 4 --bf16\n";
  EXPECT_EQ(value(read(aside + launch), "num_layers"), "4");
  Diagnostics said;
  const auto argv =
      read_megatron_text(aside + "if a; then\n" + launch + "else\n" + launch + "fi\n", "job", {}, said);
  ASSERT_TRUE(argv.has_value());
  ASSERT_EQ(said.items().size(), 1u);
  EXPECT_NE(render(said.items()[0]).find("2 commands hold options of Megatron-LM, that of line 6 is read"),
            std::string::npos);
}

TEST(MegatronScript, WarnsOfAnotherThatItReads) {
  Diagnostics said;
  (void)read_megatron_text("TP=4\nsource env.sh\npretrain_gpt.py --tp $TP", "job", {}, said);
  ASSERT_EQ(said.items().size(), 1u);
  EXPECT_EQ(said.items()[0].code, "not-read");
}

TEST(MegatronArgv, KnowsTheLineOfEachOption) {
  const MegatronArguments argv = read("--swiglu\n\n--split '99,\n1,0'\n--bf16 \\\n  --lr 1\n--fp16");
  const auto line = [&](const char* name) { return argv.find(name)->where.line; };
  EXPECT_EQ(line("swiglu"), 1);
  EXPECT_EQ(line("split"), 3);
  EXPECT_EQ(line("bf16"), 5);
  EXPECT_EQ(line("lr"), 6);
  EXPECT_EQ(line("fp16"), 7);
}

TEST(MegatronArgv, MarksVariablesThatNobodyDefined) {
  const MegatronArguments argv = read("--a $A --b ${B:-$X} --c $(nproc) --d `nproc` --e '$E'");
  EXPECT_THAT(argv.find("a")->unexpanded, ElementsAre("A"));
  EXPECT_THAT(argv.find("b")->unexpanded, ElementsAre("B"));
  EXPECT_THAT(argv.find("c")->unexpanded, ElementsAre("(…)"));
  EXPECT_THAT(argv.find("d")->unexpanded, ElementsAre("`…`"));
  EXPECT_THAT(argv.find("e")->unexpanded, IsEmpty());
}

TEST(MegatronArgv, IsTakenFromTheCommandLineWordByWord) {
  Diagnostics diagnostics;
  const std::vector<std::string> words = {"--num-layers", "4", "--moe-layer-freq", "[0]*1 + [1]*3",
                                          "--tp=$TP"};
  const auto argv = read_megatron_words(words, {{"TP", "2"}}, diagnostics);
  ASSERT_TRUE(argv.has_value());
  EXPECT_EQ(value(*argv, "moe_layer_freq"), "[0]*1 + [1]*3");
  EXPECT_EQ(value(*argv, "tp"), "2");
}

TEST(MegatronArgv, CountsTheLastOfTwo) {
  Diagnostics diagnostics;
  const auto argv = read_megatron_text("--num-layers 4\n--num-layers 8\n", "job", {}, diagnostics);
  ASSERT_TRUE(argv.has_value());
  EXPECT_EQ(value(*argv, "num_layers"), "8");
  ASSERT_EQ(diagnostics.items().size(), 1u);
  EXPECT_EQ(render(diagnostics.items()[0]),
            "job:2: warning: --num-layers: is given twice, and the last counts: 8 after 4");
}

TEST(MegatronArgv, RefusesWhatItCannotSplit) {
  EXPECT_EQ(refusal("--split '99,1,0\n--lr 1\n"), "job:1: error: the quote ' is not closed");
  EXPECT_EQ(refusal("TP=1\nA=( --lr 1\npretrain_gpt.py $A\n"), "job:2: error: the array A is not closed");
  EXPECT_EQ(
      refusal("$OPTIONS --lr 1"),
      "job:1: error: $OPTIONS may hold any option, and its value is not known\n"
      "  hint: --define OPTIONS='…'; or set the launcher of the script to echo, and import what it prints");
  EXPECT_NE(refusal("pretrain_gpt.py $(options) --lr 1").find("hint: set the launcher"), std::string::npos);
  EXPECT_NE(refusal("# nothing\n").find("holds no option of Megatron-LM"), std::string::npos);
}

TEST(MegatronArgv, SaysOnceWhatItDoesNotRead) {
  Diagnostics words, none;
  ASSERT_TRUE(read_megatron_text("my launcher here\n--num-layers 4\n", "job", {}, words).has_value());
  ASSERT_EQ(words.items().size(), 1u);
  EXPECT_EQ(render(words.items()[0]),
            "job:1: warning: 3 words stand before the first option and are not read, 'my' first");
  EXPECT_FALSE(read_megatron_text("[model]\nn_layers = 32\n", "job.toml", {}, none).has_value());
  ASSERT_EQ(none.items().size(), 1u);
  EXPECT_EQ(none.items()[0].code, "no-arguments");
}

TEST(MegatronFlags, AreNamedOnceAndInTheirCanonicalForm) {
  std::vector<std::string_view> names;
  for (const MegatronFlag& flag : megatron_flags()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), flag.name), 0) << flag.name;
    EXPECT_EQ(flag.name.find('-'), std::string_view::npos) << flag.name;
    EXPECT_TRUE(flag.kind == MegatronFlagKind::kRead || !flag.text.empty()) << flag.name;
    names.push_back(flag.name);
  }
}

TEST(MegatronFlags, KnowEverySpellingAndWhatReplacedTheDead) {
  for (const MegatronSpelling& spelling : megatron_spellings())
    EXPECT_NE(find_megatron_flag(spelling.name), nullptr) << spelling.option;
  for (const MegatronDeadName& dead : megatron_dead_names())
    EXPECT_NE(find_megatron_flag(dead.now), nullptr) << dead.name;
}

// Of `${NAME:-"8"}` a shell takes the quotes off; within double quotes single ones are letters.
TEST(MegatronScript, TakesADefaultOutOfItsQuotes) {
  const auto value = [](const std::string& word) -> std::string {
    Diagnostics said;
    const auto argv = read_megatron_text("--a " + word, "job", {}, said);
    const MegatronArgument* a = argv ? argv->find("a") : nullptr;
    return a == nullptr || !a->unexpanded.empty() || a->values.empty() ? "unknown" : a->values.front();
  };
  for (const char* eight : {"${N:-\"8\"}", "${N:-'8'}", "${N-\"8\"}", "\"${N:-\"8\"}\"", "${N:=\"8\"}"})
    EXPECT_EQ(value(eight), "8") << eight;
  for (const char* unknown : {"${N:-\"$X\"}", "\"${N:-'8'}\"", "${N:-\"8\"\"9\"}", "${N:-\"8 9\"}"})
    EXPECT_EQ(value(unknown), "unknown") << unknown;
}

}  // namespace
}  // namespace stagecraft
