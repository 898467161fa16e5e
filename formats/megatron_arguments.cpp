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

namespace stagecraft {

namespace {

constexpr std::size_t kWarmUpIterations = 2;
constexpr std::string_view kDumpTitle = "- arguments -";
constexpr std::string_view kDumpEnd = "- end of arguments -";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::string_view without_blanks(std::string_view text) {
  return trimmed(text, " \t\r");
}

bool starts_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool continues_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
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
  if (line.empty() || !is_blank(line.front())) return std::nullopt;
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

struct Word {
  std::string text = {};
  std::vector<std::string> unexpanded = {};
  int line = 0;
};

// Splits as a shell does, without running anything: quotes, comments, backslashes at line ends.
class Words {
 public:
  Words(const std::string& name, const ShellDefines& defines, Diagnostics& diagnostics)
      : name_(name), defines_(defines), diagnostics_(diagnostics) {}

  std::vector<Word> split(std::string_view text) {
    text = without_byte_order_mark(text);
    for (at_ = 0; at_ < text.size();) step(text);
    if (quote_ != 0) {
      diagnostics_.error({.code = "open-quote",
                          .where = {name_, quote_line_, 0},
                          .message = fmt::format("the quote {} is not closed", quote_)});
    }
    end_word();
    return std::move(words_);
  }

  // Expands a word that a shell has already unquoted.
  Word expand(std::string_view text) {
    quote_ = '"';
    open_ = true;
    for (at_ = 0; at_ < text.size();) {
      if (text[at_] == '$')
        dollar(text);
      else
        word_.text += text[at_++];
    }
    quote_ = 0;
    open_ = false;
    return std::exchange(word_, {});
  }

 private:
  void step(std::string_view text) {
    const char c = text[at_];
    if (quote_ == '\'') return c == '\'' ? close_quote() : take(c);
    if (c == '\\' && at_ + 1 < text.size()) return backslash(text);
    if (c == '$') return dollar(text);
    if (c == '`') return note_command();
    if (quote_ == '"') return c == '"' ? close_quote() : take(c);
    if (c == '\'' || c == '"') {
      quote_ = c;
      quote_line_ = line_;
      open_ = true;
      ++at_;
    } else if (is_blank(c) || c == '\n') {
      end_word();
      if (c == '\n') ++line_;
      ++at_;
    } else if (c == '#' && !open_) {
      at_ = std::min(text.find('\n', at_), text.size());
    } else {
      take(c);
    }
  }

  void take(char c) {
    if (c == '\n') ++line_;  // inside quotes
    word_.text += c;
    open_ = true;
    ++at_;
  }

  void close_quote() {
    quote_ = 0;
    ++at_;
  }

  void backslash(std::string_view text) {
    const std::size_t next = text[at_ + 1] == '\r' ? at_ + 2 : at_ + 1;
    if (next < text.size() && text[next] == '\n') {
      ++line_;
      at_ = next + 1;
    } else {
      word_.text += text[at_ + 1];
      open_ = true;
      at_ += 2;
    }
  }

  void note_command() {
    if (std::ranges::find(word_.unexpanded, "`…`") == word_.unexpanded.end())
      word_.unexpanded.emplace_back("`…`");
    take('`');
  }

  // $NAME, ${NAME}, ${NAME:-default}; $(command) is never run.
  void dollar(std::string_view text) {
    const std::size_t begin = at_;
    std::size_t end = at_ + 1;
    std::string variable;
    std::optional<std::string_view> fallback;
    if (end < text.size() && text[end] == '{') {
      const std::size_t close = text.find_first_of("}\n", end);
      const bool closed = close != std::string_view::npos && text[close] == '}';
      for (std::size_t i = end + 1; i < text.size() && continues_name(text[i]); ++i) variable += text[i];
      const std::size_t behind = std::min(end + 1 + variable.size(), text.size());
      if (closed) fallback = fallback_of(text.substr(behind, close - behind));
      end = closed ? close + 1 : behind;
    } else if (end < text.size() && text[end] == '(') {
      variable = "(…)";
      ++end;
    } else {
      while (end < text.size() && continues_name(text[end])) variable += text[end++];
    }
    at_ = end;
    open_ = true;
    if (const auto known = defines_.find(variable); known != defines_.end()) return put(known->second);
    if (fallback) {
      diagnostics_.warning({.code = "assumed",
                            .where = {name_, line_, 0},
                            .message = fmt::format("${} is not known: {}, its default, is taken", variable,
                                                   in_quotes(*fallback)),
                            .hint = fmt::format("--define {}=VALUE", variable)});
      return put(*fallback);
    }
    word_.text += text.substr(begin, end - begin);
    if (!variable.empty()) word_.unexpanded.push_back(variable);
  }

  // Of ":-2" and "-2" (":=" and "=" alike) the 2; nothing where a shell would have to expand or unquote it.
  static std::optional<std::string_view> fallback_of(std::string_view operation) {
    if (operation.starts_with(':')) operation.remove_prefix(1);
    if (!operation.starts_with('-') && !operation.starts_with('=')) return std::nullopt;
    operation.remove_prefix(1);
    if (operation.find_first_of("$`'\"\\") != std::string_view::npos) return std::nullopt;
    return operation;
  }

  void put(std::string_view value) {
    for (const char c : value) {
      if (quote_ == 0 && (is_blank(c) || c == '\n'))
        end_word();
      else
        word_.text += c, open_ = true;
    }
  }

  void end_word() {
    if (open_) {
      word_.line = line_;
      words_.push_back(std::move(word_));
    }
    word_ = {};
    open_ = false;
  }

  const std::string& name_;
  const ShellDefines& defines_;
  Diagnostics& diagnostics_;
  std::vector<Word> words_;
  Word word_;
  std::size_t at_ = 0;
  char quote_ = 0;
  bool open_ = false;  // a word has begun, be it empty
  int line_ = 1, quote_line_ = 1;
};

// "--lr" and "-lr" are options, "-1" and "-5e-3" are numbers.
bool is_option(const Word& word) {
  const std::size_t letter = word.text.find_first_not_of('-');
  return letter != std::string::npos && letter > 0 && starts_name(word.text[letter]);
}

class ArgvReader {
 public:
  ArgvReader(const std::string& name, Diagnostics& diagnostics)
      : diagnostics_(diagnostics), arguments_{.door = MegatronArguments::Door::kArgv, .file = name} {}

  MegatronArguments read(const std::vector<Word>& words) && {
    for (const Word& word : words) {
      if (is_option(word))
        begin_option(word);
      else if (is_program(word))
        end_launcher(word);
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
  [[nodiscard]] SourceLocation place(const Word& word) const { return {arguments_.file, word.line, 0}; }

  // The first Python file, unless it is the value of an option of Megatron-LM's own.
  [[nodiscard]] bool is_program(const Word& word) const {
    if (arguments_.program || !word.text.ends_with(".py")) return false;
    if (!current_ || !current_->values.empty()) return true;
    const MegatronFlag* flag = find_megatron_flag(current_->name);
    return flag == nullptr || is_of_launcher(*flag);
  }

  // Ends the options of a launcher, which stand before the program.
  void end_launcher(const Word& word) {
    end_option();
    for (MegatronArgument& item : arguments_.items) item.before_program = true;
    arguments_.program = MegatronProgram{.file = word.text, .where = place(word)};
  }

  void begin_option(const Word& word) {
    end_option();
    const std::size_t equals = word.text.find('=');
    const std::string option = word.text.substr(0, equals);
    current_ = MegatronArgument{.spelled = option, .where = place(word)};
    current_->name = canonical_option(option.substr(option.find_first_not_of('-')));
    if (equals != std::string::npos) add_value(word, word.text.substr(equals + 1));
  }

  void add_value(const Word& word, std::string value) {
    current_->values.push_back(std::move(value));
    current_->unexpanded.insert(current_->unexpanded.end(), word.unexpanded.begin(), word.unexpanded.end());
  }

  void stray(const Word& word) {
    static constexpr std::string_view kLaunchers[] = {"torchrun", "python", "python3", "srun", "mpirun"};
    if (std::ranges::find(kLaunchers, word.text) != std::end(kLaunchers)) return;
    if (word.unexpanded.empty()) return strays_.push_back(word);
    diagnostics_.error({.code = "unexpanded-variable",
                        .where = place(word),
                        .message = fmt::format("${} may hold any option, and its value is not known",
                                               word.unexpanded.front()),
                        .hint = fmt::format("--define {}='…'", word.unexpanded.front())});
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

  void end_option() {
    if (!current_) return;
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
  std::vector<Word> strays_;
};

std::optional<MegatronArguments> checked(MegatronArguments arguments, const ErrorWatch& watch,
                                         Diagnostics& diagnostics) {
  if (arguments.items.empty()) {
    diagnostics.error(
        {.code = "no-arguments",
         .where = {arguments.file, 0, 0},
         .message = "holds no option of Megatron-LM (--num-layers 32), nor the argument block of its log",
         .hint = "a shell script is not read: run it with its launcher set to echo, and import "
                 "what it prints"});
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
  Words words(name, defines, diagnostics);
  return checked(ArgvReader(name, diagnostics).read(words.split(text)), watch, diagnostics);
}

std::optional<MegatronArguments> read_megatron_words(std::span<const std::string> given,
                                                     const ShellDefines& defines, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  const std::string name = "command line";
  Words expander(name, defines, diagnostics);
  std::vector<Word> words;
  for (const std::string& word : given) words.push_back(expander.expand(word));
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
