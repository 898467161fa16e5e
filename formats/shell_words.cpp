#include "formats/shell_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "base/yaml.hpp"
#include "formats/shell_grammar.hpp"
#include "formats/shell_variables.hpp"

namespace stagecraft {

namespace {

using Words = ShellWords;

// Beyond these a text is left as it stands: variables may hold each other many times.
constexpr std::size_t kLongestOperation = 4'096, kMostExpanded = 4'194'304;

// Among what is not known: commands, and ${NAME%.yaml}.
constexpr std::string_view kCommand = "(…)", kOperation = "{…}";
constexpr std::string_view kJoins[] = {"&&", "||", "|"};
constexpr std::string_view kPrefixes[] = {"command", "builtin"}, kPrints[] = {"echo", "printf"};

// "x = 8", "++x" and "x <<= 1", but not "x == 8" and "x <= 8".
bool assigns(std::string_view arithmetic) {
  if (arithmetic.find("++") != std::string_view::npos || arithmetic.find("--") != std::string_view::npos)
    return true;
  for (std::size_t at = arithmetic.find('='); at != std::string_view::npos;
       at = arithmetic.find('=', at + 1)) {
    const std::string_view before = arithmetic.substr(0, at);
    if (arithmetic.substr(at).starts_with("=="))
      ++at;
    else if (before.ends_with("<<") || before.ends_with(">>") || before.empty() ||
             std::string_view("!<>").find(before.back()) == std::string_view::npos)
      return true;
  }
  return false;
}

using VariableNames = std::set<std::string, std::less<>>;

// The commands of a text. Those that set variables do so before the next is read.
class ShellText {
 public:
  // `repeated`: what the text sets more than once. A set that is not seen for what it is, in a function or in a
  // here-document, would count as certain; so would one that a loop or a function meets on its way back.
  ShellText(const std::string& name, const ShellDefines& defines, Diagnostics& diagnostics,
            const VariableNames& repeated = {})
      : name_(name), variables_(defines), diagnostics_(diagnostics) {
    for (const std::string& several : repeated) variables_.never_known(several);
  }

  ShellCommands read(std::string_view text) {
    for (at_ = 0; at_ < text.size();) step(text);
    if (quote_ != 0)
      refuse_open("open-quote", quote_line_, fmt::format("the quote {} is not closed", quote_));
    else if (!array_.empty())
      refuse_open("open-array", array_line_, fmt::format("the array {} is not closed", set_name(array_)));
    end_command("");
    if (!script_) launches_.clear();
    return {.launches = std::move(launches_), .all = std::move(all_)};
  }

  [[nodiscard]] VariableNames repeated() && { return std::move(repeated_); }

  // Expands a word that a shell has already unquoted.
  ShellWord expand(std::string_view text) {
    quote_ = '"';
    open_ = in_one_word_ = true;
    for (at_ = 0; at_ < text.size();) {
      if (text[at_] == '$')
        dollar(text);
      else
        word_.text += text[at_++];
    }
    return std::move(word_);
  }

 private:
  void refuse_open(const char* code, int line, std::string message) {
    diagnostics_.error({.code = code, .where = {name_, line, 0}, .message = std::move(message)});
  }

  void step(std::string_view text) {
    const char c = text[at_];
    if (quote_ == '\'') return c == '\'' ? close_quote() : take(c);
    if (c == '\\' && at_ + 1 < text.size()) return backslash(text);
    if (c == '$') return dollar(text);
    if (c == '`') return note_command(text);
    if (quote_ == '"') return c == '"' ? close_quote() : take(c);
    if (c == '\'' || c == '"') {
      quote_ = c;
      quote_line_ = line_;
      open_ = true;
      ++at_;
    } else if (is_shell_blank(c) || c == '\n') {
      blank(text);
    } else if (c == '#' && !open_) {
      at_ = std::min(text.find('\n', at_), text.size());
    } else if (!array_.empty()) {
      if (c != ')') return take(c);
      end_array();
      ++at_;
    } else if (c == ';' || c == '&' || c == '|') {
      end_by_operator(text);
    } else if (c == '(') {
      open_parenthesis(text);
    } else if (c == ')') {
      close_parenthesis();
    } else if (c == '<' || c == '>') {
      take_redirection(c);
    } else {
      take(c);
    }
  }

  // "> log", "2>&1", "&>>log"; of "cat<<EOF" the first word ends here.
  void take_redirection(char c) {
    if (open_ && word_.text.find_first_not_of("0123456789&<>") != std::string::npos) end_word();
    word_.redirects = true;
    take(c);
  }

  void blank(std::string_view text) {
    const bool ends = text[at_] == '\n';
    if (ends && array_.empty()) {
      end_command("");
      parentheses_ = 0;
    } else {
      end_word();
    }
    if (ends) ++line_;
    ++at_;
    if (ends && array_.empty() && !here_.empty()) skip_here_document(text);
  }

  // Its lines are no commands. A text that lacks the last of one is taken to have none.
  void skip_here_document(std::string_view text) {
    const std::string end = std::exchange(here_, {});
    int lines = 0;
    for (std::size_t begin = at_; here_documents_ && begin < text.size(); ++lines) {
      const std::size_t length = std::min(text.find('\n', begin), text.size()) - begin;
      const bool last = trimmed(text.substr(begin, length), "\t\r") == end;
      begin += length + 1;
      if (!last) continue;
      at_ = std::min(begin, text.size());
      line_ += lines + 1;
      return;
    }
    here_documents_ = false;
  }

  // But "2>&1", "&> log", ">| log", and the bars of `--pipeline-model-parallel-layout E|t*3|L`.
  void end_by_operator(std::string_view text) {
    const std::string_view rest = text.substr(at_);
    const bool redirects = word_.text.ends_with('>') || word_.text.ends_with('<') || rest.starts_with("&>");
    const bool in_value = open_ && (word_.text.starts_with("--") ||
                                    (!command_.empty() && command_.back().text.starts_with("--")));
    if ((redirects && rest.front() != ';') || (in_value && rest.front() == '|')) return take(rest.front());
    const std::string_view joins = rest.substr(0, rest.starts_with("&&") || rest.starts_with("||") ? 2 : 1);
    end_command(joins);
    at_ += joins.size();
  }

  // Of an array, of arithmetic, of commands, or within a word.
  void open_parenthesis(std::string_view text) {
    if (open_ && word_.text.ends_with('=') && !set_name(word_.text).empty()) {
      array_ = std::exchange(word_, {}).text;
      array_line_ = line_;
      open_ = false;
      ++at_;
    } else if (!open_ && text.substr(at_).starts_with("((")) {
      const std::string_view line = text.substr(at_, std::min(text.find('\n', at_), text.size()) - at_);
      const std::string_view all = line.substr(0, std::min(line.find("))"), line.size() - 2) + 2);
      if (assigns(all)) forget_names(all);
      word_.text += all;
      open_ = true;
      at_ += all.size();
    } else if (!open_ && command_.empty()) {
      compounds_.open_group();
      ++at_;
    } else {
      ++parentheses_;
      take('(');
    }
  }

  // Of commands, or behind a pattern of `case`.
  void close_parenthesis() {
    if (parentheses_ > 0) {
      --parentheses_;
      return take(')');
    }
    end_command("");
    compounds_.close_group();
    ++at_;
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

  void note_command(std::string_view text) {
    const std::size_t close = text.substr(0, at_ + kLongestOperation).find('`', at_ + 1);
    const std::size_t end = close == std::string_view::npos ? at_ + 1 : close + 1;
    leave_out(text.substr(at_, end - at_), "`…`", "`…`");
    at_ = end;
  }

  // What is not known, of which no blank splits the word.
  void leave_out(std::string_view written, std::string_view unknown, std::string_view text) {
    line_ += static_cast<int>(std::ranges::count(written, '\n'));
    word_.text += text;
    open_ = true;
    mark_unknown(word_, unknown);
  }

  // What stands behind a `$`: $NAME, ${NAME}, ${NAME[@]}, ${NAME:-default}, $(command).
  struct Expansion {
    std::string_view written = {};    // all of it
    std::string variable = {};        // kCommand of a command; empty of `$` alone
    std::string_view operation = {};  // "[@]", ":-default"; empty: none
    bool open = false;                // "${" that no brace closes

    [[nodiscard]] std::string_view index() const {
      const bool item = operation.starts_with('[') && operation.ends_with(']');
      return item ? operation.substr(1, operation.size() - 2) : std::string_view();
    }
    [[nodiscard]] bool is_whole_array() const { return index() == "@" || index() == "*"; }
    [[nodiscard]] bool is_item() const {
      return !index().empty() && index().size() < 7 && std::ranges::all_of(index(), is_digit);
    }
    [[nodiscard]] bool has_default() const { return is_default(operation); }
  };

  Expansion expansion_at(std::string_view text, std::size_t begin) {
    const std::size_t next = begin + 1;
    const auto written_to = [&](std::size_t end) { return text.substr(begin, end - begin); };
    if (text.substr(next).starts_with('(')) {
      const std::string_view written = written_to(end_of_command(text, next));
      return {.written = written, .variable = std::string(kCommand)};
    }
    if (!text.substr(next).starts_with('{')) {
      const std::string_view name = text.substr(next, word_length(text.substr(next)));
      return {.written = written_to(next + name.size()), .variable = std::string(name)};
    }
    const std::string_view name = text.substr(next + 1, word_length(text.substr(next + 1)));
    const std::size_t behind = next + 1 + name.size(), close = closing_brace(text, next);
    if (close == std::string_view::npos)
      return {.written = written_to(behind), .variable = std::string(name), .open = true};
    return {.written = written_to(close + 1),
            .variable = std::string(name),
            .operation = text.substr(behind, close - behind)};
  }

  // A command is never run.
  void dollar(std::string_view text) {
    const Expansion it = expansion_at(text, at_);
    at_ += it.written.size();
    open_ = true;
    if (it.variable == kCommand) forget_what_arithmetic_sets(it.written);
    if (put_known(it)) return;
    if (const auto fallback = fallback_of(it.operation))
      return put_fallback(it.variable, *fallback, it.operation);
    leave_out_expansion(it);
  }

  // False where the value is not known, or not what is asked of it.
  bool put_known(const Expansion& it) {
    if (it.open || !is_known(it.variable)) return false;
    const Words& known = *variables_.find(it.variable);
    if (it.is_whole_array() || (it.is_item() && are_known(known))) {
      put_items(*variables_.find_items(it.variable), it.index());
      return true;
    }
    const bool empty = known.empty() || known.front().text.empty();
    const bool needs_default = empty && it.operation.starts_with(':');
    if (!it.operation.empty() && (!it.has_default() || needs_default)) return false;
    put_first(known);
    return true;
  }

  void leave_out_expansion(const Expansion& it) {
    if (it.written == "$(" && quote_ == 0) compounds_.open_group();  // too long to be skipped
    const bool plain = it.operation.empty() || it.has_default() || it.is_whole_array() || it.is_item();
    if (it.open || !plain)
      leave_out(it.written, kOperation, "${…}");
    else if (it.variable.empty())
      word_.text += it.written;
    else if (it.variable == kCommand)
      leave_out(it.written, kCommand, "$(…)");
    else
      leave_out(it.written, it.variable,
                it.has_default() ? "${" + it.variable + "}" : std::string(it.written));
  }

  // Of texts that begin further and further behind, no byte is looked at twice.
  static bool lacks(char wanted, std::string_view text, std::size_t begin, std::size_t& none_before) {
    const bool none = text.find(wanted, std::max(begin, none_before)) == std::string_view::npos;
    if (none) none_before = text.size();
    return none;
  }

  // Of the one at `begin`, on its line.
  std::size_t closing_brace(std::string_view text, std::size_t begin) {
    text = text.substr(0, begin + kLongestOperation);
    if (lacks('}', text, begin, no_brace_before_)) return std::string_view::npos;
    int depth = 0;
    for (std::size_t i = begin; i < text.size() && text[i] != '\n'; ++i) {
      if (text[i] == '{' && text[i - 1] == '$') ++depth;
      if (text[i] == '}' && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  // $((TP *= 2))
  void forget_what_arithmetic_sets(std::string_view text) {
    if (text.starts_with("$((") && assigns(text)) forget_names(text);
  }

  static bool is_default(std::string_view operation) {
    if (operation.starts_with(':')) operation.remove_prefix(1);
    return operation.starts_with('-') || operation.starts_with('=') || operation.starts_with('?');
  }

  // One that is not may be any number of items.
  static bool are_known(const Words& items) {
    return std::ranges::all_of(items, [](const ShellWord& item) { return item.unexpanded.empty(); });
  }

  bool is_known(const std::string& variable) {
    const Words* known = variables_.find(variable);
    if (known == nullptr || expanded_ > kMostExpanded) return false;
    for (const ShellWord& item : *known) expanded_ += item.text.size() + 1;
    return expanded_ <= kMostExpanded;
  }

  // Behind the parenthesis that closes the one at `begin`, or behind that one where none does.
  std::size_t end_of_command(std::string_view text, std::size_t begin) {
    text = text.substr(0, begin + kLongestOperation);
    if (lacks(')', text, begin, no_parenthesis_before_)) return begin + 1;
    int depth = 0;
    char quote = 0;
    for (std::size_t i = begin; i < text.size(); ++i) {
      const char c = text[i];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '(') {
        ++depth;
      } else if (c == ')' && --depth == 0) {
        return i + 1;
      }
    }
    return begin + 1;
  }

  // Of `:-2`, `-2` and `:-"2"` (`:=` and `=` alike) the 2; nothing where a shell would have to expand it, or to
  // unquote a part of it.
  [[nodiscard]] std::optional<std::string_view> fallback_of(std::string_view operation) const {
    if (operation.starts_with(':')) operation.remove_prefix(1);
    if (!operation.starts_with('-') && !operation.starts_with('=')) return std::nullopt;
    operation.remove_prefix(1);
    if (in_its_own_quotes(operation)) operation = operation.substr(1, operation.size() - 2);
    if (operation.find_first_of("$`'\"\\") != std::string_view::npos) return std::nullopt;
    return operation;
  }

  // '"8"'. Within double quotes single ones are letters; outside, blanks would split what these hold together.
  [[nodiscard]] bool in_its_own_quotes(std::string_view text) const {
    if (text.size() < 2 || text.front() != text.back()) return false;
    if (text.front() != '"' && (text.front() != '\'' || quote_ != 0)) return false;
    return quote_ != 0 || text.find_first_of(" \t") == std::string_view::npos;
  }

  // ":=" and "=" set the variable.
  void put_fallback(const std::string& variable, std::string_view fallback, std::string_view operation) {
    diagnostics_.warning(
        {.code = "assumed",
         .where = {name_, line_, 0},
         .message = fmt::format("${} is not known: {}, its default, is taken", variable, in_quotes(fallback)),
         .hint = fmt::format("--define {}=VALUE", variable)});
    const ShellWord value{.text = std::string(fallback)};
    if (operation.substr(0, 2).find('=') != std::string_view::npos)
      set(variable, is_certain() ? std::optional<Words>({value}) : std::nullopt);
    put(value);
  }

  // Each item is a word, on the line where it stands; or all are one.
  void put_items(const Words& items, std::string_view index) {
    if (is_digit(index.front())) {
      const std::optional<std::int64_t> n = parse_integer(index);
      if (n && std::cmp_less(*n, items.size())) put(items[static_cast<std::size_t>(*n)]);
      return;
    }
    if (in_one_word_ || in_assignment() || (quote_ == '"' && index == "*")) return put_joined(items);
    if (items.size() == 1) return put(items.front());
    open_ = !word_.text.empty();
    end_word();
    only_sets_ = false;
    for (const ShellWord& item : items) {
      words().push_back(item);
      if (item.line == 0) words().back().line = line_;  // of the user
    }
  }

  void put_joined(const Words& items) {
    for (const ShellWord& item : items) {
      if (&item != &items.front()) word_.text += ' ';
      put(item);
    }
  }

  // As a shell does where an array is asked for without [@].
  void put_first(const Words& items) {
    open_ = open_ && (quote_ != 0 || !word_.text.empty());
    if (!items.empty()) put(items.front());
  }

  // A value is split at blanks unless it is in quotes or set; what is not known in it stays marked.
  void put(const ShellWord& value) {
    const bool splits = quote_ == 0 && !in_assignment();
    const std::string_view text = value.text;
    const auto& unknown = value.unexpanded;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (splits && (is_shell_blank(c) || c == '\n')) {
        end_word();
        continue;
      }
      word_.text += c;
      open_ = true;
      if ((c != '$' && c != '`') || unknown.empty()) continue;
      const std::string_view here = unknown_at(text.substr(i));
      if (std::ranges::find(unknown, here) != unknown.end())
        mark_unknown(word_, here);
      else if (std::ranges::find(unknown, kOperation) != unknown.end() && text.substr(i).starts_with("${"))
        mark_unknown(word_, kOperation);
    }
  }

  [[nodiscard]] bool in_assignment() const {
    return array_.empty() && only_sets_ && !set_name(word_.text).empty();
  }

  // The items of the array that is read, or the words of the command.
  Words& words() { return array_.empty() ? command_ : items_; }

  void end_word() {
    if (std::exchange(open_, false)) {
      word_.line = line_;
      if (array_.empty()) note_here_document();
      if (!array_.empty() || !compounds_.takes(word_.text, command_)) {
        if (array_.empty() && set_name(word_.text).empty() && !is_declaring(word_.text)) only_sets_ = false;
        words().push_back(std::move(word_));
      }
    }
    word_ = {};
  }

  [[nodiscard]] bool is_declaring(std::string_view word) const {
    return declares(word) || (word.starts_with('-') && !command_.empty() && declares(command_.front().text));
  }

  // "<<EOF", "<<-EOF", "<< EOF": its lines follow this one.
  void note_here_document() {
    const std::string_view text = word_.text;
    const bool alone = !command_.empty() && command_.back().redirects &&
                       (command_.back().text == "<<" || command_.back().text == "<<-");
    if (alone)
      here_ = text;
    else if (word_.redirects && text.starts_with("<<") && !text.starts_with("<<<"))
      here_ = text.substr(text.starts_with("<<-") ? 3 : 2);
  }

  [[nodiscard]] bool is_certain() const { return !compounds_.is_open() && join_.empty(); }

  void set(const std::string& name, std::optional<Words> value, bool appends = false, bool array = false) {
    if (!appends && !extends(name, value) && !set_.insert(name).second) repeated_.insert(name);
    variables_.set(name, std::move(value), appends, array);
    if (compounds_.in_braces()) variables_.never_known(name);
  }

  // options="$options --bf16"
  [[nodiscard]] bool extends(const std::string& name, const std::optional<Words>& value) const {
    const Words* now = variables_.find(name);
    if (now == nullptr || now->size() != 1 || !value || value->size() != 1) return false;
    const std::string& options = now->front().text;
    return options.find("--") != std::string::npos && value->front().text.find(options) != std::string::npos;
  }

  void forget_names(std::string_view text) {
    for (const std::string& name : names_in(text)) set(name, std::nullopt);
  }

  void end_array() {
    end_word();
    const std::string name(set_name(array_));
    std::optional<Words> items = std::exchange(items_, {});
    const bool indexed = std::ranges::any_of(*items, [](const ShellWord& item) {
      return item.text.starts_with('[') && item.text.find("]=") != std::string::npos;
    });
    if (!is_certain() || indexed) items.reset();
    set(name, std::move(items), array_.ends_with("+="), true);
    script_ = true;
    if (std::ranges::any_of(command_, changes_values)) variables_.never_known(name);
    array_.clear();
    after_array_ = true;
  }

  // Of commands that `joins` joins with the next: `cd there && torchrun …`, `… | tee log`.
  void end_command(std::string_view joins) {
    end_word();
    const bool follows = is_one_of(joins, kJoins);
    if (command_.empty() && !after_array_) {
      if (follows) join_ = joins;
      return;
    }
    if (!command_.empty()) run(std::exchange(command_, {}), is_certain() && joins != "|" && joins != "&");
    join_ = follows ? joins : "";
    after_array_ = false;
    only_sets_ = true;
  }

  void run(Words words, bool certain) {
    leave_out_redirections(words);
    while (!words.empty() && is_one_of(words.front().text, kPrefixes)) words.erase(words.begin());
    if (words.empty()) return;
    if (declares(words.front().text)) return declare(words, certain);
    const auto first =
        std::ranges::find_if(words, [](const ShellWord& word) { return set_name(word.text).empty(); });
    if (first == words.end()) {
      for (const ShellWord& word : words) set_variable(word, certain);
      return;
    }
    const Words command(std::make_move_iterator(first), std::make_move_iterator(words.end()));
    forget_what_it_sets(command);
    if (join_.empty() || join_ == "&&") all_.insert(all_.end(), command.begin(), command.end());
    if (std::ranges::any_of(command, [](const ShellWord& word) { return word.text.ends_with(".py"); }) &&
        !is_one_of(command.front().text, kPrints))
      launches_.push_back(command);
  }

  // With the file that stands apart: "> log".
  static void leave_out_redirections(Words& words) {
    Words kept;
    bool file_follows = false;
    for (ShellWord& word : words) {
      const std::string_view text = word.text;
      if (word.redirects)
        file_follows = text.ends_with('<') || text.ends_with('>') || text.ends_with('|') || text == "<<-";
      else if (!std::exchange(file_follows, false))
        kept.push_back(std::move(word));
    }
    words = std::move(kept);
  }

  void declare(const Words& words, bool certain) {
    const bool changes = std::ranges::any_of(words, changes_values);
    for (const ShellWord& word : words) {
      const std::string name(set_name(word.text));
      if (!name.empty()) set_variable(word, certain);
      if (changes && !word.text.starts_with('-')) variables_.never_known(name.empty() ? word.text : name);
    }
  }

  void forget_what_it_sets(const Words& command) {
    for (const std::string& name : names_set_by(command)) set(name, std::nullopt);
    const std::string_view first = command.front().text;
    const bool evaluates = first == "eval" && std::ranges::any_of(command, [](const ShellWord& word) {
                             return !word.unexpanded.empty();
                           });
    if (script_ && command.size() > 1 && (first == "source" || first == "." || evaluates)) {
      diagnostics_.warning(
          {.code = "not-read",
           .where = {name_, command.front().line, 0},
           .message = fmt::format("{} is not read: what it sets is not known", in_quotes(command[1].text)),
           .hint = "--define NAME=VALUE for what it changes"});
    }
  }

  // What holds a part that is not known is known only as a list of options.
  void set_variable(const ShellWord& word, bool certain) {
    const std::string name(set_name(word.text));
    const std::size_t equals = word.text.find('=');
    ShellWord value{.text = word.text.substr(equals + 1), .unexpanded = word.unexpanded, .line = word.line};
    const std::size_t unknown = value.unexpanded.size();
    const bool known = unknown == 0 || (unknown <= kMostUnknown && value.text.find(' ') != std::string::npos);
    const bool item = word.text[name.size()] == '[';
    set(name, certain && known && !item ? std::optional<Words>({std::move(value)}) : std::nullopt,
        word.text[equals - 1] == '+');
    script_ = true;
  }

  const std::string& name_;
  ShellVariables variables_;
  Diagnostics& diagnostics_;
  Words all_, command_, items_;
  std::vector<Words> launches_;
  VariableNames set_, repeated_;
  ShellWord word_;
  std::string array_;  // "NAME=" or "NAME+=" of the array that is read
  ShellCompounds compounds_;
  std::string join_;  // with the command before: "&&", "||", "|"
  std::string here_;  // the last line of the here-document that follows this one
  std::size_t at_ = 0, expanded_ = 0, no_brace_before_ = 0, no_parenthesis_before_ = 0;
  int parentheses_ = 0;  // open within words
  char quote_ = 0;
  bool open_ = false;  // a word has begun, be it empty
  bool only_sets_ = true, after_array_ = false, in_one_word_ = false, here_documents_ = true;
  bool script_ = false;
  int line_ = 1, quote_line_ = 1, array_line_ = 1;
};

}  // namespace

ShellCommands shell_words(std::string_view text, const std::string& name, const ShellDefines& defines,
                          Diagnostics& diagnostics) {
  text = without_byte_order_mark(text);
  Diagnostics unheard;
  ShellText first(name, defines, unheard);
  (void)first.read(text);
  return ShellText(name, defines, diagnostics, std::move(first).repeated()).read(text);
}

ShellWord expanded_word(std::string_view word, const std::string& name, const ShellDefines& defines,
                        Diagnostics& diagnostics) {
  return ShellText(name, defines, diagnostics).expand(word);
}

}  // namespace stagecraft
