#include "formats/megatron_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/launcher_prefix.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "base/yaml.hpp"
#include "formats/input_text.hpp"
#include "formats/megatron_flags.hpp"
#include "formats/shell_variables.hpp"
#include "formats/shell_words.hpp"

namespace stagecraft {

namespace {

constexpr std::size_t kWarmUpIterations = 2;
constexpr std::string_view kDumpTitle = "- arguments -";
constexpr std::string_view kDumpEnd = "- end of arguments -";

std::string_view without_blanks(std::string_view text) {
  return trimmed(text, " \t\r");
}

// Options are written with dashes or underscores, in the dump always with underscores.
std::string canonical_option(std::string_view written) {
  std::string name = lower_case(written);
  std::ranges::replace(name, '-', '_');
  return name;
}

// ---- The dump ----

// ['core_attn', 'mlp'] and [0, 1, 1]: the items; nullopt for what is no flat list.
std::optional<std::vector<std::string>> list_items(std::string_view text) {
  if (text.size() < 2 || !text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  if (text.find_first_of("[]*+") != std::string_view::npos) return std::nullopt;
  std::vector<std::string> items;
  while (!without_blanks(text).empty()) {
    const std::size_t comma = text.find(',');
    std::string_view item = without_blanks(text.substr(0, comma));
    if (item.size() >= 2 && (item.front() == '\'' || item.front() == '"') && item.back() == item.front())
      item = item.substr(1, item.size() - 2);
    items.emplace_back(item);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return items;
}

// `  name ......... value`; a name of 48 letters or more has no dots, an empty value leaves blanks.
std::optional<MegatronArgument> dump_argument(std::string_view line, const SourceLocation& where) {
  if (line.empty() || !is_shell_blank(line.front())) return std::nullopt;
  line = without_blanks(line);
  const std::size_t name_end = std::min(line.find(' '), line.size());
  const std::string_view name = line.substr(0, name_end);
  if (name.empty() || !starts_name(name.front()) || !std::ranges::all_of(name, continues_name))
    return std::nullopt;
  std::string_view value = line.substr(name_end);
  const std::size_t dots = value.find_first_not_of(' ');
  if (dots != std::string_view::npos && value[dots] == '.') {
    const std::size_t after = std::min(value.find_first_not_of('.', dots), value.size());
    if (after == value.size() || value[after] == ' ') value.remove_prefix(after);  // else ".001", a value
  }
  value = without_blanks(value);
  MegatronArgument argument{.name = canonical_option(name), .spelled = std::string(name), .where = where};
  if (auto items = list_items(value))
    argument.values = std::move(*items);
  else if (!value.empty() && value != "None")
    argument.values = {std::string(value)};
  return argument;
}

// "elapsed time per iteration (ms): 126993.5 ", of BigScience's fork in seconds, of the fields between bars.
std::optional<double> field(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + key.size());
  return parse_number(without_blanks(rest.substr(0, rest.find('|'))));
}

std::optional<MegatronIteration> iteration_of(std::string_view line) {
  if (line.find(" iteration ") == std::string_view::npos) return std::nullopt;
  std::optional<double> time = field(line, "elapsed time per iteration (ms):");
  if (const auto seconds = field(line, "elapsed time per iteration (s):"); !time && seconds)
    time = *seconds * 1000;
  if (!time || !(*time > 0)) return std::nullopt;
  MegatronIteration iteration{.milliseconds = *time};
  if (const auto batch = field(line, "global batch size:"); batch && *batch >= 1 && *batch <= 1e9)
    iteration.global_batch_size = static_cast<std::int64_t>(*batch);
  return iteration;
}

// The argument blocks of a log, and its iterations. A job that was started again prints its block again.
class DumpReader {
 public:
  DumpReader(const std::string& name, Diagnostics& diagnostics)
      : name_(name),
        diagnostics_(diagnostics),
        arguments_{.door = MegatronArguments::Door::kDump, .file = name} {}

  MegatronArguments read(std::string_view text) && {
    bool inside = false;
    int number = 0;
    for (const std::string_view line : lines_of(without_byte_order_mark(text))) {
      ++number;
      if (line.find(kDumpTitle) != std::string_view::npos) {
        inside = true;
        ++run_;
      } else if (inside && line.find(kDumpEnd) != std::string_view::npos) {
        inside = false;
      } else if (inside) {
        if (auto argument = dump_argument(without_launcher_prefix(line), {name_, number, 0}))
          take(std::move(*argument));
      } else if (auto iteration = iteration_of(line)) {
        iteration->run = run_;
        arguments_.iterations.push_back(*iteration);
      }
    }
    if (inside) {
      diagnostics_.warning(
          {.code = "cut-off",
           .where = {name_, number, 0},
           .message = "the argument block has no end: what it says is used as far as it goes"});
    }
    return std::move(arguments_);
  }

 private:
  void take(MegatronArgument argument) {
    if (const MegatronArgument* before = arguments_.find(argument.name)) return compare(*before, argument);
    arguments_.items.push_back(std::move(argument));
  }

  // Options without effect may differ: a restart reads another checkpoint.
  void compare(const MegatronArgument& before, const MegatronArgument& now) {
    const MegatronFlag* flag = find_megatron_flag(now.name);
    const bool aside = flag != nullptr && flag->kind == MegatronFlagKind::kAside;
    if (before.values == now.values || aside) return;
    const auto told = [](const MegatronArgument& argument) {
      return argument.values.empty() ? "None" : join(argument.values, " ");
    };
    diagnostics_.add({.severity = flag == nullptr ? Severity::kWarning : Severity::kError,
                      .code = "given-twice",
                      .where = now.where,
                      .path = now.spelled,
                      .message = fmt::format("is {} here, and {} before", told(now), told(before)),
                      .hint = "one job a log: cut it before the other's arguments",
                      .notes = {{.where = before.where, .message = "first given here"}}});
  }

  const std::string& name_;
  Diagnostics& diagnostics_;
  MegatronArguments arguments_;
  int run_ = 0;
};

// ---- The words ----

// "--lr" and "-lr" are options, "-1" and "-5e-3" are numbers.
bool is_option(const ShellWord& word) {
  const std::size_t letter = word.text.find_first_not_of('-');
  return letter != std::string::npos && letter > 0 && starts_name(word.text[letter]);
}

class ArgvReader {
 public:
  ArgvReader(const std::string& name, Diagnostics& diagnostics)
      : diagnostics_(diagnostics), arguments_{.door = MegatronArguments::Door::kArgv, .file = name} {}

  MegatronArguments read(const ShellWords& words) && {
    may_be_launcher_ =
        std::ranges::any_of(words, [](const ShellWord& word) { return word.text.ends_with(".py"); });
    for (const ShellWord& word : words) {
      if (is_option(word))
        begin_option(word);
      else if (is_program(word))
        end_launcher(word);
      else if (current_ && is_unknown_array(word))
        say_array(word);
      else if (current_)
        add_value(word, word.text);
      else
        stray(word);
    }
    end_option();
    if (!arguments_.items.empty()) say_strays();  // else the file is none of Megatron-LM's
    return std::move(arguments_);
  }

 private:
  [[nodiscard]] SourceLocation place(const ShellWord& word) const { return {arguments_.file, word.line, 0}; }

  // The first Python file, unless it is the value of an option of Megatron-LM's own.
  [[nodiscard]] bool is_program(const ShellWord& word) const {
    if (arguments_.program || !word.text.ends_with(".py")) return false;
    if (!current_ || !current_->values.empty()) return true;
    const MegatronFlag* flag = find_megatron_flag(current_->name);
    return flag == nullptr || is_of_launcher(*flag);
  }

  // Ends the options of a launcher, which stand before the program.
  void end_launcher(const ShellWord& word) {
    end_option();
    for (MegatronArgument& item : arguments_.items) item.before_program = true;
    arguments_.program = MegatronProgram{.file = word.text, .where = place(word)};
  }

  void begin_option(const ShellWord& word) {
    end_option();
    const std::size_t equals = word.text.find('=');
    const std::string option = word.text.substr(0, equals);
    current_ = MegatronArgument{.spelled = option, .where = place(word)};
    current_->name = canonical_option(option.substr(option.find_first_not_of('-')));
    if (equals != std::string::npos) add_value(word, word.text.substr(equals + 1));
  }

  void add_value(const ShellWord& word, std::string value) {
    warn_of_more_options(word);
    current_->values.push_back(std::move(value));
    current_->unexpanded.insert(current_->unexpanded.end(), word.unexpanded.begin(), word.unexpanded.end());
  }

  void stray(const ShellWord& word) {
    static constexpr std::string_view kLaunchers[] = {"torchrun", "python",    "python3", "srun",
                                                      "mpirun",   "deepspeed", "eval",    "exec"};
    if (std::ranges::find(kLaunchers, word.text) != std::end(kLaunchers)) return;
    if (word.unexpanded.empty()) return strays_.push_back(word);
    diagnostics_.add(of_any_option(word, Severity::kError));
  }

  [[nodiscard]] Diagnostic of_any_option(const ShellWord& word, Severity severity) const {
    const std::string& variable = word.unexpanded.front();
    // Of a positional argument or a command there is no name to define.
    const std::string define =
        starts_name(variable.front()) ? fmt::format("--define {}='…'; or ", variable) : "";
    return {.severity = severity,
            .code = "unexpanded-variable",
            .where = place(word),
            .message = fmt::format("${} may hold any option, and its value is not known", variable),
            .hint = define + "set the launcher of the script to echo, and import what it prints"};
  }

  // "${NAME[@]}": arrays hold options, but for those of data.
  [[nodiscard]] bool is_unknown_array(const ShellWord& word) const {
    return word.unexpanded.size() == 1 && !current_->name.ends_with("data_path") &&
           (word.text == "${" + word.unexpanded.front() + "[@]}" ||
            word.text == "${" + word.unexpanded.front() + "[*]}");
  }

  void say_array(const ShellWord& word) {
    const MegatronFlag* flag = find_megatron_flag(current_->name);
    const bool aside = flag != nullptr && flag->kind == MegatronFlagKind::kAside;
    diagnostics_.add(of_any_option(word, aside ? Severity::kWarning : Severity::kError));
  }

  // `--save $FOLDER $MORE`: most options but those of data have one value.
  void warn_of_more_options(const ShellWord& word) {
    const bool bare = word.unexpanded.size() == 1 && word.text.starts_with('$') &&
                      word.text.find_first_of("/.=,:") == std::string::npos;
    if (!bare || current_->values.empty() || current_->name.ends_with("data_path")) return;
    const MegatronFlag* flag = find_megatron_flag(current_->name);
    if (flag == nullptr || flag->kind != MegatronFlagKind::kAside) return;  // else the option reports it
    diagnostics_.add(of_any_option(word, Severity::kWarning));
  }

  // The program's name may stand before the first option.
  void say_strays() {
    if (strays_.empty()) return;
    const std::string first = in_quotes(strays_.front().text);
    diagnostics_.warning(
        {.code = "stray-word",
         .where = place(strays_.front()),
         .message = strays_.size() == 1
                        ? first + " stands before the first option and is not read"
                        : fmt::format("{} words stand before the first option and are not read, {} first",
                                      strays_.size(), first)});
  }

  // Python's argparse takes as much of a name as no other begins with. Of a launcher's options not all are
  // known here.
  void complete_name() {
    if (may_be_launcher_ && !arguments_.program) return;
    const auto whole = megatron_option_of(current_->name);
    if (!whole) return;
    diagnostics_.warning(
        {.code = "assumed",
         .where = current_->where,
         .path = current_->spelled,
         .message = fmt::format("is the beginning of one known option, and read as {}", in_dashes(*whole)),
         .hint = "write it out"});
    current_->name = *whole;
  }

  static std::string in_dashes(std::string_view name) {
    std::string option(name);
    std::ranges::replace(option, '_', '-');
    return "--" + option;
  }

  void end_option() {
    if (!current_) return;
    complete_name();
    for (const MegatronSpelling& spelling : megatron_spellings()) {
      if (spelling.option != current_->name) continue;
      current_->name = spelling.name;
      if (!spelling.value.empty()) current_->values = {std::string(spelling.value)};
      break;
    }
    auto& items = arguments_.items;
    const auto before = std::ranges::find(items, current_->name, &MegatronArgument::name);
    if (before == items.end()) {
      items.push_back(std::move(*current_));
    } else {
      warn_of_two(*before);
      *before = std::move(*current_);
    }
    current_.reset();
  }

  void warn_of_two(const MegatronArgument& before) {
    const MegatronFlag* flag = find_megatron_flag(before.name);
    if (before.values == current_->values || (flag != nullptr && flag->kind == MegatronFlagKind::kAside))
      return;
    diagnostics_.warning({.code = "given-twice",
                          .where = current_->where,
                          .path = current_->spelled,
                          .message = fmt::format("is given twice, and the last counts: {} after {}",
                                                 join(current_->values, " "), join(before.values, " "))});
  }

  Diagnostics& diagnostics_;
  MegatronArguments arguments_;
  std::optional<MegatronArgument> current_;
  ShellWords strays_;
  bool may_be_launcher_ = false;  // a program may follow
};

// Options that a model is made of.
std::size_t options_read(const ShellWords& command) {
  return static_cast<std::size_t>(std::ranges::count_if(command, [](const ShellWord& word) {
    if (!is_option(word)) return false;
    const std::string_view option = std::string_view(word.text).substr(word.text.find_first_not_of('-'));
    const MegatronFlag* flag = find_megatron_flag(canonical_option(option.substr(0, option.find('='))));
    return flag != nullptr && flag->kind == MegatronFlagKind::kRead && !is_of_launcher(*flag);
  }));
}

// The launch with the most of them, and the most words.
ShellWords launch_of(ShellCommands commands, const std::string& name, Diagnostics& diagnostics) {
  ShellWords* chosen = &commands.all;
  std::size_t most = 0;
  std::int64_t launches = 0;
  for (ShellWords& launch : commands.launches) {
    const std::size_t options = options_read(launch);
    if (options > 0) ++launches;
    const bool better = options > most || (options == most && launch.size() >= chosen->size());
    if (chosen != &commands.all && !better) continue;
    chosen = &launch;
    most = options;
  }
  if (launches > 1) {
    diagnostics.warning({.code = "several-launches",
                         .where = {name, chosen->front().line, 0},
                         .message = fmt::format("{} hold options of Megatron-LM, that of line {} is read",
                                                counted(launches, "command"), chosen->front().line),
                         .hint = "to import another, give a file that holds its command alone"});
  }
  return std::move(*chosen);
}

std::optional<MegatronArguments> checked(MegatronArguments arguments, const ErrorWatch& watch,
                                         Diagnostics& diagnostics) {
  if (arguments.items.empty()) {
    diagnostics.error(
        {.code = "no-arguments",
         .where = {arguments.file, 0, 0},
         .message = "holds no option of Megatron-LM (--num-layers 32), nor the argument block of its log",
         .hint = "of a shell script that hides them: set its launcher to echo, and import what it prints"});
  }
  if (!watch.clean()) return std::nullopt;
  return arguments;
}

// The block itself, or a script that quotes it in a comment: the title line has dashes on both sides.
bool is_dump(std::string_view text) {
  return text.find(kDumpTitle) != std::string_view::npos;
}

}  // namespace

const MegatronArgument* MegatronArguments::find(std::string_view name) const {
  const auto found = std::ranges::find(items, name, &MegatronArgument::name);
  return found == items.end() ? nullptr : &*found;
}

std::optional<MegatronArguments> read_megatron_text(std::string_view text, const std::string& name,
                                                    const ShellDefines& defines, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  if (is_dump(text)) return checked(DumpReader(name, diagnostics).read(text), watch, diagnostics);
  const ShellWords words = launch_of(shell_words(text, name, defines, diagnostics), name, diagnostics);
  return checked(ArgvReader(name, diagnostics).read(words), watch, diagnostics);
}

std::optional<MegatronArguments> read_megatron_words(std::span<const std::string> given,
                                                     const ShellDefines& defines, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  const std::string name = "command line";
  ShellWords words;
  for (const std::string& word : given) words.push_back(expanded_word(word, name, defines, diagnostics));
  return checked(ArgvReader(name, diagnostics).read(words), watch, diagnostics);
}

std::vector<double> steady_iterations_ms(const MegatronArguments& arguments,
                                         std::optional<std::int64_t> global_batch_size) {
  std::vector<double> times;
  std::map<int, std::size_t> seen;  // by run
  for (const MegatronIteration& iteration : arguments.iterations) {
    if (++seen[iteration.run] <= kWarmUpIterations) continue;
    if (!global_batch_size || !iteration.global_batch_size ||
        *iteration.global_batch_size == *global_batch_size)
      times.push_back(iteration.milliseconds);
  }
  return times;
}

}  // namespace stagecraft
