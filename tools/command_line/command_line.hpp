// The command line as one table: it feeds the parser, --help, the manual and the
// completions of shells.
//
//   throws UsageError when the words on the command line are wrong: exit code 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

enum ExitCode : int { kDone = 0, kAnswerIsNo = 1, kWrongInput = 2, kOurBug = 3 };

class UsageError : public std::runtime_error {
 public:
  UsageError(const std::string& message, std::string hint)
      : std::runtime_error(message), hint_(std::move(hint)) {}
  [[nodiscard]] const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// What becomes of the file that an option names.
enum class Written : std::uint8_t {
  kNo,
  kAtEnd,     // of the work: checked before it
  kRowByRow,  // whoever opens it checks it
};

struct OptionSpec {
  std::string_view name;           // without dashes
  std::string_view argument = {};  // "N", "PATH=VALUE"; empty for a flag
  std::string_view help = {};
  bool repeated = false;
  std::string_view values = {};                         // "auto|always|never": the only ones
  std::vector<std::string> (*suggestions)() = nullptr;  // names to list and complete; the command checks them
  std::string_view key = {};                            // the scenario key that says the same
  Written written = Written::kNo;
  std::string_view first_file = {};  // behind a prefix of several files: ".0.et"
};

struct CommandSpec;

class Arguments {
 public:
  [[nodiscard]] const CommandSpec& command() const { return *command_; }
  [[nodiscard]] bool has(std::string_view option) const { return values_.contains(option); }
  [[nodiscard]] std::vector<std::string> all(std::string_view option) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
  // throws UsageError when it is no whole number in [min, max].
  [[nodiscard]] int integer(std::string_view option, std::optional<int> fallback, int min, int max) const;
  [[nodiscard]] Duration duration(std::string_view option, Duration fallback) const;
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  // How many of the words stand behind `--`: the last ones.
  [[nodiscard]] std::size_t words_behind_dashes() const { return behind_dashes_; }

 private:
  friend class CommandLineParser;
  explicit Arguments(const CommandSpec& command) : command_(&command) {}

  const CommandSpec* command_;  // of a table that outlives all arguments
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> words_;  // words that are no options
  std::size_t behind_dashes_ = 0;
};

// `--seed`, 1 by default: the same range for all commands, so that one can repeat another's rows.
[[nodiscard]] std::uint64_t seed_of(const Arguments& arguments);

// `--jobs`: threads at most; `otherwise` where it is not given.
[[nodiscard]] int jobs_of(const Arguments& arguments, int otherwise = 1);
// Of the machine: what long studies take by default.
[[nodiscard]] int all_cores();

// The environment of a command besides its arguments.
struct Session {
  std::ostream& out;
  std::ostream& err;
  DataDirectory data;
  bool out_is_terminal = false, err_is_terminal = false;
  std::optional<Diagnostic> no_data = {};  // why there are none: only `doctor` is called then
  // Ends the program with this exit code while threads still run; it never returns. Empty where the process is
  // another's, as Python's or that of an MPI job.
  std::function<void(int code)> leave = {};
};

// `--color always`, or `auto` on a terminal where NO_COLOR is not set (no-color.org: set and not empty).
[[nodiscard]] bool wants_color(const Arguments& arguments, const Session& session);

struct CommandSpec {
  std::string_view name;
  std::string_view words;  // "SCENARIO…"
  std::string_view summary;
  std::span<const std::string_view> examples;
  std::span<const OptionSpec> options;
  int (*run)(const Arguments& arguments, Session& session) = nullptr;
  std::string_view completes;  // "files" | words separated by spaces, one of them before files
};

// Options that every command takes.
[[nodiscard]] std::span<const OptionSpec> common_options();
// Its own, and the common ones behind them.
[[nodiscard]] std::vector<OptionSpec> options_of(const CommandSpec& command);

// `others` are the commands whose options an unknown one may mean.
[[nodiscard]] Arguments parse_arguments(const CommandSpec& command, std::span<const CommandSpec> others,
                                        const std::vector<std::string>& words);

// Refuses options that a part of a command, such as `calibrate show`, does not use; `takes` lists those it
// uses besides the common ones. throws UsageError for others, which would have no effect.
void refuse_without_effect(const Arguments& arguments, std::string_view part,
                           std::span<const std::string_view> takes, const std::string& hint);

// --json beside another form (--format, --markdown, --graphviz): one would have no effect. throws UsageError.
void refuse_two_forms(const Arguments& arguments);

[[nodiscard]] std::string command_help(const CommandSpec& command);

}  // namespace stagecraft
