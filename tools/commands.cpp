// The table of commands. Adding one means a row here and a file cmd_NAME.cpp.
#include "tools/commands.hpp"

namespace stagecraft {
namespace {

constexpr OptionSpec kSet = {.name = "set",
                             .argument = "PATH=VALUE",
                             .help = "override a key of the scenario; may be repeated",
                             .repeated = true,
                             .values = ""};

constexpr OptionSpec kRunOptions[] = {
    kSet,
    {.name = "require-fit",
     .argument = "",
     .help = "exit 1 when the job does not fit into memory",
     .values = ""},
    {.name = "unfold", .argument = "", .help = "simulate every replica, not one of each kind", .values = ""}};
constexpr std::string_view kRunExamples[] = {
    "stagecraft run scenarios/gpt3-175b-1024xA100.yaml",
    "stagecraft run scenarios/gpt3-175b-1024xA100.yaml --set parallelism.pipeline=16 --json"};

constexpr OptionSpec kSetOnly[] = {kSet};
constexpr std::string_view kCheckExamples[] = {"stagecraft check scenarios/gpt3-175b-1024xA100.yaml",
                                               "stagecraft check my.yaml --set parallelism.tensor=16"};

constexpr OptionSpec kMemoryOptions[] = {
    kSet, {.name = "require-fit", .argument = "", .help = "exit 1 when the job does not fit", .values = ""}};
constexpr std::string_view kMemoryExamples[] = {
    "stagecraft memory scenarios/gpt3-175b-1024xA100.yaml",
    "stagecraft memory my.yaml --set training.recompute=full --require-fit"};

constexpr OptionSpec kScheduleOptions[] = {
    {.name = "schedule",
     .argument = "NAME",
     .help = "gpipe, 1f1b, interleaved-1f1b, interleaved-group",
     .values = ""},
    {.name = "stages", .argument = "P", .help = "pipeline ranks", .values = ""},
    {.name = "micro-batches", .argument = "M", .help = "per iteration", .values = ""},
    {.name = "chunks", .argument = "V", .help = "model chunks per rank (default 1)", .values = ""},
    {.name = "micro-batch-group",
     .argument = "N",
     .help = "of interleaving (default: the schedule's own)",
     .values = ""},
    {.name = "forward", .argument = "TIME", .help = "of one chunk (default 1s)", .values = ""},
    {.name = "input-gradient", .argument = "TIME", .help = "of one chunk (default 1s)", .values = ""},
    {.name = "weight-gradient", .argument = "TIME", .help = "of one chunk (default 1s)", .values = ""},
    {.name = "recompute", .argument = "TIME", .help = "before each backward (default 0s)", .values = ""},
    {.name = "message", .argument = "TIME", .help = "of a message between ranks (default 0s)", .values = ""},
    {.name = "p2p",
     .argument = "HOW",
     .help = "overlapped: beside compute; blocking: the sender waits (default overlapped)",
     .values = "overlapped|blocking"},
    {.name = "width", .argument = "N", .help = "columns of the picture (default 120)", .values = ""}};
constexpr std::string_view kScheduleExamples[] = {
    "stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 8",
    "stagecraft schedule show --schedule interleaved-1f1b --stages 4 --micro-batches 8 --chunks 2 --json"};

constexpr std::string_view kDoctorExamples[] = {"stagecraft doctor", "stagecraft doctor --json"};

constexpr OptionSpec kValidateOptions[] = {{.name = "max-error",
                                            .argument = "SHARE",
                                            .help = "exit 1 when the mean error of a set passes it (0.05)",
                                            .values = ""}};
constexpr std::string_view kValidateExamples[] = {"stagecraft validate",
                                                  "stagecraft validate my-measurements.yaml --max-error 0.1"};

constexpr CommandSpec kCommands[] = {
    {.name = "run",
     .words = "SCENARIO…",
     .summary = "predict an iteration",
     .examples = kRunExamples,
     .options = kRunOptions,
     .run = run_command,
     .completes = "scenarios"},
    {.name = "check",
     .words = "SCENARIO…",
     .summary = "parse and feasibility, no simulation",
     .examples = kCheckExamples,
     .options = kSetOnly,
     .run = check_command,
     .completes = "scenarios"},
    {.name = "memory",
     .words = "SCENARIO…",
     .summary = "the memory ledger of every stage and the verdict",
     .examples = kMemoryExamples,
     .options = kMemoryOptions,
     .run = memory_command,
     .completes = "scenarios"},
    {.name = "schedule",
     .words = "show",
     .summary = "the timeline of a pipeline schedule at given costs",
     .examples = kScheduleExamples,
     .options = kScheduleOptions,
     .run = schedule_command,
     .completes = "show"},
    {.name = "validate",
     .words = "[FILE…]",
     .summary = "predictions against published measurements",
     .examples = kValidateExamples,
     .options = kValidateOptions,
     .run = validate_command,
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

}  // namespace stagecraft
