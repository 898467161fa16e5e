// The table of commands. Adding one means a row here and a file cmd_NAME.cpp.
#include "tools/commands/commands.hpp"

#include <algorithm>

#include "tools/commands/schedule_lab.hpp"

namespace stagecraft {
namespace {

constexpr OptionSpec kSet = {.name = "set",
                             .argument = "PATH=VALUE",
                             .help = "override a key of the scenario; may be repeated",
                             .repeated = true};

constexpr OptionSpec kHtml = {.name = "html",
                              .argument = "FILE",
                              .help = "a page to look at: one file, no network",
                              .written = Written::kAtEnd};
constexpr OptionSpec kForceView = {.name = "force", .help = "replace a file that is there"};

constexpr OptionSpec kRunOptions[] = {
    kSet,
    {.name = "require-fit", .help = "exit 1 when the job does not fit into memory"},
    {.name = "strict", .help = "exit 1 when the profile has no data near some shapes of GEMMs or attention"},
    {.name = "trace",
     .argument = "FILE",
     .help = "the timeline for Perfetto (.pftrace) or Chrome (.json)",
     .written = Written::kAtEnd},
    kHtml,
    {.name = "chakra",
     .argument = "PREFIX",
     .help = "Chakra execution traces: PREFIX.0.et and so on, a file for each rank",
     .written = Written::kAtEnd,
     .first_file = ".0.et"},
    kForceView,
    {.name = "unfold", .help = "simulate every replica, not one of each kind"},
    {.name = "why", .help = "what bounds the iteration, and which change would help most"}};
constexpr std::string_view kRunExamples[] = {
    "stagecraft run scenarios/gpt3-175b-1024xA100.yaml",
    "stagecraft run scenarios/gpt3-175b-1024xA100.yaml --set parallelism.virtual_stages=4 --json"};

constexpr OptionSpec kSetOnly[] = {kSet};
constexpr std::string_view kCheckExamples[] = {
    "stagecraft check scenarios/gpt3-175b-1024xA100.yaml",
    "stagecraft check scenarios/llama3-8b-64xA100.yaml --set training.micro_batch_size=2"};

constexpr OptionSpec kCompareOptions[] = {kSet,
                                          {.name = "vary",
                                           .argument = "PATH=V1,V2,…",
                                           .help = "a variant for each value; several make a grid",
                                           .repeated = true},
                                          {.name = "format",
                                           .argument = "FORM",
                                           .help = "of the answer (default text)",
                                           .values = "text|markdown|csv|json"},
                                          kHtml,
                                          kForceView};
constexpr std::string_view kCompareExamples[] = {
    "stagecraft compare scenarios/pipeline-4x8.yaml --vary schedule=gpipe,1f1b",
    "stagecraft compare scenarios/llama3-8b-64xA100.yaml --vary training.recompute=none,full --jobs 2"};

constexpr OptionSpec kRowTable = {.name = "table", .help = "standard output is the table, also into a pipe"};
constexpr OptionSpec kRowCsv = {.name = "csv", .help = "standard output is CSV"};
constexpr OptionSpec kRowSqlite = {.name = "sqlite",
                                   .argument = "FILE",
                                   .help = "rows into a database as well",
                                   .written = Written::kRowByRow};
constexpr OptionSpec kRowOutput = {.name = "output",
                                   .argument = "FILE",
                                   .help = "rows into a new file, as JSON lines",
                                   .written = Written::kRowByRow};
constexpr OptionSpec kRowForce = {.name = "force", .help = "replace files that are there"};

constexpr OptionSpec kSweepOptions[] = {
    kSet,
    kRowOutput,
    {.name = "resume",
     .argument = "FILE",
     .help = "go on with a file of rows, after a kill for instance",
     .written = Written::kRowByRow},
    {.name = "shard",
     .argument = "K/N",
     .help = "every N-th point from K on (0/3, 1/3, 2/3); merge joins them"},
    kRowCsv,
    kRowSqlite,
    kRowTable,
    kHtml,
    {.name = "full", .help = "whole results: ledgers of all stages, critical path, links"},
    kRowForce};
constexpr std::string_view kSweepExamples[] = {
    "stagecraft sweep scenarios/sweeps/schedules.yaml --table",
    "stagecraft sweep scenarios/sweeps/gpt3-175b-plans.yaml --shard 0/2000 --csv"};

constexpr OptionSpec kSearchOptions[] = {
    kSet,
    {.name = "vary",
     .argument = "PATH=V1,V2,…",
     .help = "try these values; `all`: every number that divides",
     .repeated = true},
    {.name = "fix", .argument = "PATH", .help = "keep what the scenario says", .repeated = true},
    {.name = "gpus", .argument = "COUNTS", .help = "256..4096 (doubling, and the end), or 8,16,40"},
    {.name = "top", .argument = "N", .help = "plans to list (default 10)"},
    {.name = "exhaustive", .help = "simulate all that fit, also what cannot win"},
    {.name = "price", .argument = "PRICE", .help = "of a GPU, for the cost of tokens: '2 USD/h'"},
    {.name = "write-best",
     .argument = "FILE",
     .help = "the winner as a scenario",
     .written = Written::kAtEnd},
    {.name = "force", .help = "replace the file if there is one"}};
constexpr std::string_view kSearchExamples[] = {
    "stagecraft search scenarios/llama3-8b-64xA100.yaml --fix parallelism.zero_stage",
    "stagecraft search scenarios/llama3-8b-64xA100.yaml --gpus 16..64 --fix schedule "
    "--price 2USD/h"};

constexpr OptionSpec kMergeOptions[] = {kRowOutput, kRowCsv, kRowSqlite, kRowTable, kHtml, kRowForce};
constexpr std::string_view kMergeExamples[] = {
    "stagecraft merge tests/data/sweeps/schedules-0.jsonl tests/data/sweeps/schedules-1.jsonl --table",
    "stagecraft merge tests/data/sweeps/schedules-1.jsonl tests/data/sweeps/schedules-0.jsonl --csv"};

constexpr OptionSpec kMemoryOptions[] = {
    kSet,
    {.name = "model",
     .argument = "NAME",
     .help = "who counts: our ledger (default), or Fujii et al.'s formulas",
     .values = "ledger|fujii"},
    {.name = "require-fit", .help = "exit 1 when the job does not fit"}};
constexpr std::string_view kMemoryExamples[] = {
    "stagecraft memory scenarios/gpt3-175b-1024xA100.yaml",
    "stagecraft memory scenarios/llama3-8b-64xA100.yaml --set training.recompute=full --require-fit",
    "stagecraft memory scenarios/llama3-8b-64xA100.yaml --model fujii"};

constexpr OptionSpec kScheduleOptions[] = {
    {.name = "schedule",
     .argument = "NAME",
     .help = "the order of passes",
     .suggestions = schedule_names,
     .key = "schedule"},
    {.name = "stages", .argument = "P", .help = "pipeline ranks", .key = "parallelism.pipeline"},
    {.name = "micro-batches", .argument = "M", .help = "per iteration"},
    {.name = "chunks",
     .argument = "V",
     .help = "model chunks per rank (default: 1; 2 of orders with several, as interleaved-1f1b and zb-v)",
     .key = "parallelism.virtual_stages"},
    {.name = "micro-batch-group", .argument = "N", .help = "of interleaving (default: the schedule's own)"},
    {.name = "forward", .argument = "TIME", .help = "of one chunk; compare: of a stage (default 1s)"},
    {.name = "input-gradient", .argument = "TIME", .help = "of one chunk; compare: of a stage (default 1s)"},
    {.name = "weight-gradient", .argument = "TIME", .help = "of one chunk; compare: of a stage (default 1s)"},
    {.name = "recompute",
     .argument = "TIME",
     .help = "before each backward; compare: of a stage (default 0s; varuna: a forward)",
     .key = "training.recompute"},
    {.name = "fused",
     .argument = "TIME",
     .help = "of a fused pair; compare: of a stage (default: the sum of its passes)"},
    {.name = "message", .argument = "TIME", .help = "of a message between ranks (default 0s)"},
    {.name = "p2p",
     .argument = "HOW",
     .help = "beside compute (default), in Megatron's batched calls, or one by one",
     .suggestions = message_ways},
    {.name = "memory-limit",
     .argument = "N",
     .help = "check, search: chunk activations a rank may hold; compare: of stages"},
    {.name = "goal",
     .argument = "LENGTH",
     .help = "search: the length to shorten (default span)",
     .values = "span|makespan"},
    {.name = "effort", .argument = "N", .help = "search: millions of passes to replay (default 20)"},
    {.name = "format", .argument = "FORM", .help = "export (default csv)", .values = "csv|csv-calls"},
    {.name = "width", .argument = "N", .help = "columns of the picture (default 120)"}};
constexpr std::string_view kScheduleExamples[] = {
    "stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 8",
    "stagecraft schedule compare --stages 4 --micro-batches 16 --message 50ms",
    "stagecraft schedule search --stages 4 --micro-batches 16 --memory-limit 8 --weight-gradient 600ms",
    "stagecraft schedule check tests/data/schedules/csv/torchtitan_custom_schedule.csv"};

constexpr OptionSpec kGoodputOptions[] = {
    kSet,
    {.name = "vary",
     .argument = "PATH=V1,V2,…",
     .help = "a variant for each value: a table, a chart, crossing points",
     .repeated = true},
    {.name = "format",
     .argument = "FORM",
     .help = "of the chart of --vary (default text)",
     .values = "text|svg"},
    {.name = "plan", .help = "Oobleck's templates, and what each failure would do"},
    {.name = "timeline", .help = "what happened when, in the first repeat"},
    kHtml,
    kForceView};
constexpr std::string_view kGoodputExamples[] = {
    "stagecraft goodput scenarios/goodput/checkpoint-restart.yaml",
    "stagecraft goodput scenarios/goodput/oobleck.yaml --plan",
    "stagecraft goodput scenarios/goodput/bamboo.yaml --vary failures.process.rate_per_node_day=0.1,1"};

constexpr OptionSpec kTopologyOptions[] = {
    kSet,
    {.name = "graphviz", .help = "show: write DOT; nodes that hang on the same switches are one box"},
    {.name = "full", .help = "show: every GPU, NIC and switch of --graphviz"}};
constexpr std::string_view kTopologyExamples[] = {
    "stagecraft topology show scenarios/gpt3-175b-1024xA100.yaml",
    "stagecraft topology check scenarios/gpt3-175b-1024xA100.yaml --json"};

constexpr OptionSpec kReplayOptions[] = {
    {.name = "link",
     .argument = "RATE",
     .help = "of messages without a time of their own, for example 50GB/s"},
    {.name = "latency", .argument = "TIME", .help = "of the same (default 0s)"}};
constexpr std::string_view kReplayExamples[] = {
    "stagecraft replay tests/data/chakra/1f1b.0.et tests/data/chakra/1f1b.1.et --link 50GB/s",
    "stagecraft replay tests/data/chakra/1f1b.0.et tests/data/chakra/1f1b.1.et --link 400Gb/s"};

constexpr std::string_view kDoctorExamples[] = {"stagecraft doctor", "stagecraft doctor --json"};

constexpr OptionSpec kValidateOptions[] = {
    {.name = "max-error",
     .argument = "SHARE",
     .help = "exit 1 when the mean error of a set passes it, e.g. 0.05; without it there is no limit"},
    {.name = "memory", .help = "score memory, not time"},
    {.name = "attribute", .help = "which families of operations errors come from"},
    {.name = "ablation", .help = "a table of each set's error with one effect taken away"},
    {.name = "leave-out", .help = "constants fitted anew, each source left out once"},
    {.name = "markdown", .help = "as a part of docs/validation.md"},
    kHtml,
    kForceView};
constexpr std::string_view kValidateExamples[] = {
    "stagecraft validate", "stagecraft validate calibrate/validation/megatron_sc21.yaml --max-error 0.1",
    "stagecraft validate --memory --quiet",
    "stagecraft validate calibrate/validation/zero_bubble.yaml --attribute --quiet"};

constexpr OptionSpec kCalibrateOptions[] = {
    kSet,
    {.name = "base", .argument = "PROFILE", .help = "fit: what the samples do not tell; a name or a file"},
    {.name = "name", .argument = "NAME", .help = "fit: of the new profile"},
    {.name = "output",
     .argument = "FILE",
     .help = "fit: where the profile is written",
     .written = Written::kAtEnd},
    {.name = "force", .help = "fit: replace the file if there is one"},
    {.name = "end-to-end", .help = "fit: constants on whole published iterations, in place of samples"},
    {.name = "write", .help = "residuals: into the profiles; without it they are only shown"}};
constexpr std::string_view kCalibrateExamples[] = {
    "stagecraft calibrate show a100-sxm4-80gb",
    "stagecraft calibrate plan scenarios/gpt3-175b-1024xA100.yaml scenarios/llama3-8b-64xA100.yaml"};

constexpr OptionSpec kImportOptions[] = {
    {.name = "define",
     .argument = "NAME=VALUE",
     .help = "megatron: the value of a shell variable; may be repeated",
     .repeated = true},
    {.name = "gpus", .argument = "N", .help = "megatron, deepspeed: GPUs of the job, where it does not say"},
    {.name = "node", .argument = "NAME", .help = "megatron, deepspeed: the machine it runs on"},
    {.name = "vocab", .argument = "N", .help = "megatron, deepspeed: tokens, before padding"},
    {.name = "op", .argument = "NAME", .help = "nccl-tests: the collective, where the file does not say"},
    {.name = "device", .argument = "NAME", .help = "topology, kineto: the GPU, where the file does not say"},
    {.name = "link", .argument = "RATE", .help = "topology: bandwidth of a NIC, for example 400Gb/s"},
    {.name = "step",
     .argument = "N",
     .help = "kineto: of ProfilerStep#N (default: all but the first); may be repeated",
     .repeated = true},
    {.name = "gpus-per-node",
     .argument = "N",
     .help = "kineto: how ranks lie on nodes (default: the devices the trace lists)"}};
constexpr std::string_view kImportExamples[] = {
    "stagecraft import hf tests/data/hf_config/llama-3-8b.config.json",
    "stagecraft import megatron tests/data/megatron/args_dump_gpt_64layer_tp4_pp16.log.txt",
    "stagecraft import deepspeed tests/data/neox/20B.yml --gpus 96 --vocab 50257 --node dgx-a100-40gb",
    "stagecraft import kineto tests/data/kineto/hta_nccl_data_excerpt.json",
    "stagecraft import nccl-tests tests/data/nccl_tests/all_reduce_gh200_2x4_fast.txt",
    "stagecraft import nccl-tests tests/data/nccl_tests/all_gather_b200_2x8.txt --op all-gather",
    "stagecraft import topology tests/data/nccl_topo/made_hgx8_dump.xml",
    "stagecraft import topology tests/data/slurm/made_tree.conf --link 400Gb/s"};

constexpr OptionSpec kExplainOptions[] = {
    kSet,
    {.name = "depth", .argument = "N", .help = "levels of the tree (default 2)"},
    {.name = "no-sensitivities", .help = "do not simulate what 10 % more of each input gives"}};
constexpr std::string_view kExplainExamples[] = {
    "stagecraft explain scenarios/gpt3-175b-1024xA100.yaml bubble.over_ideal",
    "stagecraft explain scenarios/gpt3-175b-1024xA100.yaml mfu --depth 4",
    "stagecraft explain not-divisible"};

constexpr OptionSpec kDiffOptions[] = {
    kSet,
    {.name = "rank", .argument = "N", .help = "of the prediction (default: the trace's own)"},
    {.name = "step",
     .argument = "N",
     .help = "of ProfilerStep#N (default: all but the first); may be repeated",
     .repeated = true},
    {.name = "format", .argument = "FORM", .help = "of the answer (default text)", .values = "text|json"}};
constexpr std::string_view kDiffExamples[] = {
    "stagecraft diff tests/data/kineto/made_2x1.yaml tests/data/kineto/made_2x1.rank0.json",
    "stagecraft diff tests/data/kineto/made_2x1.yaml tests/data/kineto/made_2x1.rank0.json --json"};

constexpr CommandSpec kCommands[] = {
    {.name = "run",
     .words = "SCENARIO…",
     .summary = "predict an iteration",
     .examples = kRunExamples,
     .options = kRunOptions,
     .run = run_command,
     .completes = "files"},
    {.name = "check",
     .words = "SCENARIO…",
     .summary = "parse and feasibility, no simulation",
     .examples = kCheckExamples,
     .options = kSetOnly,
     .run = check_command,
     .completes = "files"},
    {.name = "compare",
     .words = "SCENARIO…",
     .summary = "variants side by side, relative to the first",
     .examples = kCompareExamples,
     .options = kCompareOptions,
     .run = compare_command,
     .completes = "files"},
    {.name = "sweep",
     .words = "SWEEP",
     .summary = "a grid or a sample of what-ifs, a row for each",
     .examples = kSweepExamples,
     .options = kSweepOptions,
     .run = sweep_command,
     .completes = "files"},
    {.name = "search",
     .words = "SCENARIO…",
     .summary = "the best parallelism for the hardware, and why not another",
     .examples = kSearchExamples,
     .options = kSearchOptions,
     .run = search_command,
     .completes = "files"},
    {.name = "merge",
     .words = "FILE…",
     .summary = "rows of a sweep's shards in one, as JSON lines, CSV or SQLite",
     .examples = kMergeExamples,
     .options = kMergeOptions,
     .run = merge_command,
     .completes = "files"},
    {.name = "memory",
     .words = "SCENARIO…",
     .summary = "the memory ledger of every stage and the verdict",
     .examples = kMemoryExamples,
     .options = kMemoryOptions,
     .run = memory_command,
     .completes = "files"},
    {.name = "goodput",
     .words = "SCENARIO…",
     .summary = "what failures leave of the throughput, by recovery policy",
     .examples = kGoodputExamples,
     .options = kGoodputOptions,
     .run = goodput_command,
     .completes = "files"},
    {.name = "explain",
     .words = "SCENARIO [PATH…]",
     .summary = "where a figure comes from, and what moves it",
     .examples = kExplainExamples,
     .options = kExplainOptions,
     .run = explain_command,
     .completes = "files"},
    {.name = "diff",
     .words = "SCENARIO TRACE",
     .summary = "a prediction against a trace of PyTorch's profiler, op by op",
     .examples = kDiffExamples,
     .options = kDiffOptions,
     .run = diff_command,
     .completes = "files"},
    {.name = "schedule",
     .words = "show|check|… [FILE]",
     .summary = "pipeline schedules: show, compare, check, export, import, search",
     .examples = kScheduleExamples,
     .options = kScheduleOptions,
     .run = schedule_command,
     .completes = "show compare check export import search"},
    {.name = "topology",
     .words = "show|check SCENARIO…",
     .summary = "the cluster as text or a graph, and what its links give a plan",
     .examples = kTopologyExamples,
     .options = kTopologyOptions,
     .run = topology_command,
     .completes = "show check"},
    {.name = "validate",
     .words = "[FILE…]",
     .summary = "predictions against published measurements",
     .examples = kValidateExamples,
     .options = kValidateOptions,
     .run = validate_command,
     .completes = "files"},
    {.name = "calibrate",
     .words = "fit|plan|… FILE…",
     .summary = "hardware profiles: fit, plan, residuals, show",
     .examples = kCalibrateExamples,
     .options = kCalibrateOptions,
     .run = calibrate_command,
     .completes = "fit plan residuals show"},
    {.name = "import",
     .words = "KIND FILE…",
     .summary = "deepspeed, hf, kineto, megatron, nccl-tests, topology as YAML",
     .examples = kImportExamples,
     .options = kImportOptions,
     .run = import_command,
     .completes = "deepspeed hf kineto megatron nccl-tests topology"},
    {.name = "replay",
     .words = "FILE…",
     .summary = "simulate Chakra execution traces, a file for each rank",
     .examples = kReplayExamples,
     .options = kReplayOptions,
     .run = replay_command,
     .completes = "files"},
    {.name = "doctor",
     .words = "",
     .summary = "what is built in, what is installed, which profiles and how old",
     .examples = kDoctorExamples,
     .options = {},
     .run = doctor_command,
     .completes = ""},
};

}  // namespace

std::span<const CommandSpec> commands() {
  return kCommands;
}

const CommandSpec* find_command(std::string_view name) {
  const auto found =
      std::find_if(commands().begin(), commands().end(), [&](const auto& c) { return c.name == name; });
  return found == commands().end() ? nullptr : &*found;
}

}  // namespace stagecraft
