// The arguments of a Megatron-LM job, by either of two doors.
//
//   dump   the block that rank 0 prints into its log, every default resolved, and the iteration lines behind
//   argv   the options of a launch script, one or more a line, or the words of a command line
//
// Nothing is evaluated (shell_words.hpp): a reader that needs the value of a shell variable that nobody
// defined refuses it. Both input forms give the same names, those of the dump.
//
//   source  NVIDIA/Megatron-LM @d98e8a6 megatron/training/arguments.py (_print_args), training.py
//           (training_log).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "formats/shell_words.hpp"

namespace stagecraft {

struct MegatronArgument {
  std::string name = {};                     // "tensor_model_parallel_size", lower case
  std::string spelled = {};                  // as it stands there: "--disable-bias-linear"
  std::vector<std::string> values = {};      // empty for a bare flag; for a Python list its items
  std::vector<std::string> unexpanded = {};  // shell variables in the values that nobody defined
  SourceLocation where = {};
  bool before_program = false;  // of a launcher, where Megatron-LM has no such option
};

// The program that options were given to: "pretrain_gpt.py".
struct MegatronProgram {
  std::string file = {};
  SourceLocation where = {};
};

// One line of the log: ` iteration 5/ 1000 | … | elapsed time per iteration (ms): 126993.5 | …`.
struct MegatronIteration {
  double milliseconds = 0;
  std::optional<std::int64_t> global_batch_size = {};  // differs while the batch ramps up
  int run = 0;                                         // argument blocks before it: a restart prints another
};

struct MegatronArguments {
  enum class Door : std::uint8_t { kDump, kArgv };
  Door door = Door::kArgv;
  std::string file = {};
  std::optional<MegatronProgram> program = {};  // of a command line that names it
  std::vector<MegatronArgument> items = {};     // unique names: of an option given twice the last counts
  std::vector<MegatronIteration> iterations = {};

  [[nodiscard]] const MegatronArgument* find(std::string_view name) const;
};

// The text decides its form. Errors: no argument at all, an argument of a dump repeated with another value
// (two jobs in one log), a word where an option belongs, unclosed quotes. Warning: a dump without its end.
// nullopt after an error.
[[nodiscard]] std::optional<MegatronArguments> read_megatron_text(std::string_view text,
                                                                  const std::string& name,
                                                                  const ShellDefines& defines,
                                                                  Diagnostics& diagnostics);

// The words after `--`, already split and unquoted by the shell.
[[nodiscard]] std::optional<MegatronArguments> read_megatron_words(std::span<const std::string> words,
                                                                   const ShellDefines& defines,
                                                                   Diagnostics& diagnostics);

// Times of iterations without the first two of each run, which warm up, and without those of another batch
// size than `global_batch_size`.
[[nodiscard]] std::vector<double> steady_iterations_ms(const MegatronArguments& arguments,
                                                       std::optional<std::int64_t> global_batch_size);

}  // namespace stagecraft
