#include "formats/shell_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace stagecraft {

namespace {

using Words = std::vector<ShellWord>;

bool is_shell_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

template <std::size_t n>
bool is_one_of(std::string_view word, const std::string_view (&words)[n]) {
  return std::ranges::find(words, word) != std::end(words);
}

// Beyond these a text is left as it stands: variables may hold each other many times.
constexpr std::size_t kLongestOperation = 4'096, kMostExpanded = 4'194'304;

constexpr std::string_view kJoins[] = {"&&", "||", "|", "&", ";"};
constexpr std::string_view kBegins[] = {"if", "for", "while", "until", "case"};
constexpr std::string_view kEnds[] = {"fi", "done", "esac"};
constexpr std::string_view kBefore[] = {"export", "local", "declare", "readonly", "then", "else", "do"};

// "> log", "2>&1", "&>>log".
bool is_redirection(std::string_view word) {
  const std::size_t at = word.find_first_not_of("0123456789&");
  return at != std::string_view::npos && (word[at] == '>' || word[at] == '<');
}

// The name that "NAME=…" and "NAME+=…" set; empty where the word is another.
std::string_view set_name(std::string_view word) {
  if (word.empty() || !starts_name(word.front())) return {};
  std::size_t end = 1;
  while (end < word.size() && continues_name(word[end])) ++end;
  const std::string_view behind = word.substr(end);
  return behind.starts_with('=') || behind.starts_with("+=") ? word.substr(0, end) : std::string_view();
}

// What a text sets, beside what the user defines. An array has a word for each item.
class ShellVariables {
 public:
  ShellVariables(const ShellDefines& defines) {
    for (const auto& [name, value] : defines) {
      known_[name] = Words{{.text = value}};
      users_.push_back(name);
    }
  }

  // nullptr where the value is not known.
  [[nodiscard]] const Words* find(const std::string& name) const {
    const auto found = known_.find(name);
    return found == known_.end() || !found->second ? nullptr : &*found->second;
  }

  // nullopt where it is not known, as in a branch.
  void set(const std::string& name, std::optional<Words> value, bool appends, bool array) {
    if (std::ranges::find(users_, name) != users_.end()) return;
    const auto [place, added] = known_.try_emplace(name);
    std::optional<Words>& now = place->second;
    if (!value || !appends || added) {
      now = std::move(value);
    } else if (now && array) {
      now->insert(now->end(), value->begin(), value->end());
    } else if (now && !now->empty()) {
      now->front().text += value->front().text;
      std::ranges::copy(value->front().unexpanded, std::back_inserter(now->front().unexpanded));
    }
  }

 private:
  std::map<std::string, std::optional<Words>, std::less<>> known_;
  std::vector<std::string> users_;
};

// The commands of a text. Those that set variables do so before the next is read.
class ShellText {
 public:
  ShellText(const std::string& name, const ShellDefines& defines, Diagnostics& diagnostics)
      : name_(name), variables_(defines), diagnostics_(diagnostics) {}

  Words read(std::string_view text) {
    text = without_byte_order_mark(text);
    for (at_ = 0; at_ < text.size();) step(text);
    if (quote_ != 0) {
      diagnostics_.error({.code = "open-quote",
                          .where = {name_, quote_line_, 0},
                          .message = fmt::format("the quote {} is not closed", quote_)});
    }
    end_command();
    return script_ && !launch_.empty() ? std::move(launch_) : std::move(all_);
  }

  // Expands a word that a shell has already unquoted.
  ShellWord expand(std::string_view text) {
    quote_ = '"';
    open_ = true;
    for (at_ = 0; at_ < text.size();) {
      if (text[at_] == '$')
        dollar(text);
      else
        word_.text += text[at_++];
    }
    return std::move(word_);
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
    } else if (is_shell_blank(c) || c == '\n') {
      blank(c);
    } else if (c == '#' && !open_) {
      at_ = std::min(text.find('\n', at_), text.size());
    } else if (c == ';' && array_.empty() && at_ + 1 < text.size() &&
               (is_shell_blank(text[at_ + 1]) || text[at_ + 1] == '\n')) {
      end_command();
      ++at_;
    } else if (c == '(' && array_.empty() && begins_array()) {
      array_ = std::exchange(word_, {}).text;
      open_ = false;
      ++at_;
    } else if (c == ')' && !array_.empty()) {
      end_array();
      ++at_;
    } else {
      take(c);
    }
  }

  void blank(char c) {
    if (c == '\n' && array_.empty())
      end_command();
    else
      end_word();
    if (c == '\n') ++line_;
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

  void note_command() {
    if (std::ranges::find(word_.unexpanded, "`…`") == word_.unexpanded.end())
      word_.unexpanded.emplace_back("`…`");
    take('`');
  }

  // $NAME, ${NAME}, ${NAME[@]}, ${NAME:-default}; $(command) is never run.
  void dollar(std::string_view text) {
    const std::size_t begin = at_;
    std::size_t end = at_ + 1;
    std::string variable;
    std::string_view operation;
    if (end < text.size() && text[end] == '{') {
      const std::size_t length = text.substr(end, kLongestOperation).find_first_of("}\n");
      const bool closed = length != std::string_view::npos && text[end + length] == '}';
      const std::size_t close = closed ? end + length : text.size();
      for (std::size_t i = end + 1; i < text.size() && continues_name(text[i]); ++i) variable += text[i];
      const std::size_t behind = std::min(end + 1 + variable.size(), text.size());
      if (closed) operation = text.substr(behind, close - behind);
      end = closed ? close + 1 : behind;
    } else if (end < text.size() && text[end] == '(') {
      variable = "(…)";
      end = end_of_command(text, end);
    } else {
      while (end < text.size() && continues_name(text[end])) variable += text[end++];
    }
    at_ = end;
    const bool whole = operation == "[@]" || operation == "[*]";
    const Words* known = variables_.find(variable);
    if (known != nullptr && affords(*known)) return whole ? put_all(*known) : put_first(*known);
    open_ = true;
    if (const auto fallback = fallback_of(operation)) return put_fallback(variable, *fallback);
    word_.text += text.substr(begin, end - begin);
    if (!variable.empty()) word_.unexpanded.push_back(variable);
  }

  // Behind the parenthesis that closes the one at `begin`, or behind that one where none does.
  static std::size_t end_of_command(std::string_view text, std::size_t begin) {
    int depth = 0;
    const std::size_t end = std::min(text.size(), begin + kLongestOperation);
    for (std::size_t i = begin; i < end && text[i] != '\n'; ++i) {
      if (text[i] == '(') ++depth;
      if (text[i] == ')' && --depth == 0) return i + 1;
    }
    return begin + 1;
  }

  // Of ":-2" and "-2" (":=" and "=" alike) the 2; nothing where a shell would have to expand or unquote it.
  static std::optional<std::string_view> fallback_of(std::string_view operation) {
    if (operation.starts_with(':')) operation.remove_prefix(1);
    if (!operation.starts_with('-') && !operation.starts_with('=')) return std::nullopt;
    operation.remove_prefix(1);
    if (operation.find_first_of("$`'\"\\") != std::string_view::npos) return std::nullopt;
    return operation;
  }

  void put_fallback(const std::string& variable, std::string_view fallback) {
    diagnostics_.warning(
        {.code = "assumed",
         .where = {name_, line_, 0},
         .message = fmt::format("${} is not known: {}, its default, is taken", variable, in_quotes(fallback)),
         .hint = fmt::format("--define {}=VALUE", variable)});
    put({.text = std::string(fallback)});
  }

  bool affords(const Words& items) {
    for (const ShellWord& item : items) expanded_ += item.text.size() + 1;
    return expanded_ <= kMostExpanded;
  }

  // Each item is a word, on the line where it stands.
  void put_all(const Words& items) {
    if (items.size() == 1) return put(items.front());
    const bool empty = word_.text.empty();
    open_ = open_ && !empty;
    end_word();
    for (const ShellWord& item : items) words().push_back(item);
  }

  // As a shell does where an array is asked for without [@].
  void put_first(const Words& items) {
    if (!items.empty()) put(items.front());
  }

  // A value is split at blanks unless it is in quotes; what is not known in it stays marked.
  void put(const ShellWord& value) {
    for (std::size_t i = 0; i < value.text.size(); ++i) {
      const char c = value.text[i];
      if (quote_ == 0 && (is_shell_blank(c) || c == '\n')) {
        end_word();
        continue;
      }
      word_.text += c;
      open_ = true;
      if (c != '$' && c != '`') continue;
      for (const std::string& unknown : value.unexpanded)
        if (begins_unknown(std::string_view(value.text).substr(i), unknown))
          word_.unexpanded.push_back(unknown);
    }
  }

  // `$NAME`, `${NAME` or the command that `unknown` stands for.
  static bool begins_unknown(std::string_view text, const std::string& unknown) {
    if (unknown == "(…)") return text.starts_with("$(");
    if (unknown == "`…`") return text.starts_with('`');
    text.remove_prefix(text.starts_with("${") ? 2 : 1);
    return text.starts_with(unknown);
  }

  // The items of the array that is read, or the words of the command.
  Words& words() { return array_.empty() ? command_ : items_; }

  void end_word() {
    if (open_) {
      word_.line = line_;
      words().push_back(std::move(word_));
    }
    word_ = {};
    open_ = false;
  }

  // Behind NAME= at the beginning of a command.
  [[nodiscard]] bool begins_array() const {
    return open_ && word_.text.ends_with('=') && !set_name(word_.text).empty();
  }

  void end_array() {
    end_word();
    const std::string name(set_name(array_));
    const bool joined =
        std::ranges::any_of(command_, [](const ShellWord& word) { return is_one_of(word.text, kJoins); });
    std::optional<Words> items = std::exchange(items_, {});
    if (depth_ > 0 || joined) items.reset();
    variables_.set(name, std::move(items), array_.ends_with("+="), true);
    array_.clear();
    script_ = true;
  }

  // Parts of a command that others join: `cd there && torchrun …`, `… | tee log`.
  void end_command() {
    end_word();
    Words part;
    std::string join;
    for (ShellWord& word : command_) {
      if (!is_one_of(word.text, kJoins)) {
        part.push_back(std::move(word));
        continue;
      }
      end_part(std::exchange(part, {}), join);
      join = word.text;
    }
    end_part(std::move(part), join);
    command_.clear();
  }

  void end_part(Words part, std::string_view join) {
    if (part.empty()) return;
    if (is_one_of(part.front().text, kBegins)) ++depth_;
    if (is_one_of(part.front().text, kEnds)) --depth_;
    const bool certain = depth_ <= 0 && join.empty();
    auto first = part.begin();
    while (first != part.end() && is_one_of(first->text, kBefore)) ++first;
    const auto set =
        std::find_if(first, part.end(), [](const ShellWord& word) { return set_name(word.text).empty(); });
    if (set == part.end()) {
      for (auto word = first; word != part.end(); ++word) set_variable(*word, certain);
      return;
    }
    const auto cut =
        std::find_if(set, part.end(), [](const ShellWord& word) { return is_redirection(word.text); });
    const Words command(std::make_move_iterator(set), std::make_move_iterator(cut));
    if (join != "|" && join != "||" && join != "&") all_.insert(all_.end(), command.begin(), command.end());
    const bool launches =
        std::ranges::any_of(command, [](const ShellWord& word) { return word.text.ends_with(".py"); });
    if (launches && command.size() >= launch_.size()) launch_ = command;
  }

  // What holds a part that is not known is known only as a list of options.
  void set_variable(const ShellWord& word, bool certain) {
    const std::string name(set_name(word.text));
    const std::size_t equals = word.text.find('=');
    ShellWord value{.text = word.text.substr(equals + 1), .unexpanded = word.unexpanded, .line = word.line};
    const bool known = value.unexpanded.empty() || value.text.find(' ') != std::string::npos;
    variables_.set(name, certain && known ? std::optional<Words>({std::move(value)}) : std::nullopt,
                   word.text[equals - 1] == '+', false);
    script_ = true;
  }

  const std::string& name_;
  ShellVariables variables_;
  Diagnostics& diagnostics_;
  Words all_, launch_, command_, items_;
  ShellWord word_;
  std::string array_;  // "NAME=" or "NAME+=" of the array that is read
  std::size_t at_ = 0, expanded_ = 0;
  char quote_ = 0;
  bool open_ = false;  // a word has begun, be it empty
  bool script_ = false;
  int line_ = 1, quote_line_ = 1, depth_ = 0;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view text, const std::string& name,
                                   const ShellDefines& defines, Diagnostics& diagnostics) {
  return ShellText(name, defines, diagnostics).read(text);
}

ShellWord expanded_word(std::string_view word, const std::string& name, const ShellDefines& defines,
                        Diagnostics& diagnostics) {
  return ShellText(name, defines, diagnostics).expand(word);
}

}  // namespace stagecraft
