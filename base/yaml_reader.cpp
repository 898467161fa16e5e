// The only file that sees yaml-cpp. It listens to the parser's events rather than to its nodes: events carry
// the place of an alias, stop a bomb while it grows, and leave no handle behind.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include "base/check.hpp"
#include "base/json_reader.hpp"
#include "base/utf8.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

namespace {

// A mistake after which reading on makes no sense. Never leaves this file.
struct ReadingStopped {};

constexpr std::size_t kMaxMistakes = 100;  // of one text: nobody reads more, and a hostile file has millions

// The beginning of one yaml-cpp message, in words that say what to do.
struct SyntaxHelp {
  const char* theirs;
  const char* message;
  const char* hint;
};

const std::array kSyntaxHelp{
    SyntaxHelp{YAML::ErrorMsg::MAP_VALUE, "a ':' stands where no key can",
               "put text that contains ': ' in quotes, and align the keys of one mapping"},
    SyntaxHelp{YAML::ErrorMsg::MAP_KEY, "a key cannot stand here", "align the keys of one mapping"},
    SyntaxHelp{YAML::ErrorMsg::END_OF_MAP, "expected the next `key: value` of the mapping that begins here",
               "align the keys of one mapping"},
    SyntaxHelp{YAML::ErrorMsg::END_OF_SEQ, "expected the next `- value` of the list that begins here",
               "align the dashes of one list"},
    SyntaxHelp{YAML::ErrorMsg::BLOCK_ENTRY, "a '- ' cannot stand here", "begin a list on a line of its own"},
    SyntaxHelp{YAML::ErrorMsg::END_OF_MAP_FLOW, "this '{' is never closed", "add the '}'"},
    SyntaxHelp{YAML::ErrorMsg::END_OF_SEQ_FLOW, "this '[' is never closed", "add the ']'"},
    SyntaxHelp{YAML::ErrorMsg::FLOW_END, "a closing bracket without its opening one", ""},
    SyntaxHelp{YAML::ErrorMsg::EOF_IN_SCALAR, "the text ends inside a quoted value", "close the quote"},
    SyntaxHelp{YAML::ErrorMsg::UNKNOWN_TOKEN, "a value cannot begin with this character",
               "put the value in quotes"},
    SyntaxHelp{YAML::ErrorMsg::UNKNOWN_ANCHOR, "this alias has no anchor before it",
               "define it first: &name value"},
    SyntaxHelp{YAML::ErrorMsg::INVALID_UNICODE, "the escape that ends here stands for no character",
               "write the character itself, or \\U with its eight digits; two \\u escapes are a character in "
               "JSON alone"},
};

std::string_view line_of(std::string_view text, int line) {
  for (; line > 1; --line) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// Of "nodes:4" where the colon stands; npos of any other line.
std::size_t colon_without_space(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view key = line.substr(0, std::min(colon, line.size()));
  const bool word = !key.empty() &&
                    key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
  const std::string_view rest = word && colon != std::string_view::npos ? line.substr(colon + 1) : "";
  return rest.empty() || std::string_view(" \t\r/").find(rest.front()) != std::string_view::npos
             ? std::string_view::npos
             : colon;
}

// Where the first tab of the indentation stands; npos where there is none, or nothing behind it.
std::size_t tab_in_indentation(std::string_view line) {
  const auto content = line.find_first_not_of(" \t");
  return content == std::string_view::npos ? content : line.substr(0, content).find('\t');
}

// What yaml-cpp should not even see: bytes that are no text. It takes the byte 4, for one, as the end of the
// file.
std::optional<Diagnostic> find_binary(std::string_view text, const std::string& name) {
  SourceLocation where{.file = name, .line = 1, .column = 1};
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return Diagnostic{.code = "not-utf8",
                        .where = where,
                        .message = fmt::format("byte 0x{:02x} is not UTF-8", byte),
                        .hint = "save the file as UTF-8 text"};
    }
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f) {
      return Diagnostic{.code = "not-text",
                        .where = where,
                        .message = fmt::format("byte 0x{:02x} does not belong into a text", byte),
                        .hint = "is this a YAML file?"};
    }
    text.remove_prefix(length);
    where.column += static_cast<int>(length);
    if (byte == '\n') where = {.file = name, .line = where.line + 1, .column = 1};
  }
  return std::nullopt;
}

// Whether the quoted text at `at` has its closing quote; true for what is not in quotes (as after | and >).
// Anchor and tag may stand before the quote. yaml-cpp takes the end of the file for a closing quote.
bool quote_is_closed(std::string_view text, std::size_t at) {
  constexpr std::string_view kBlank = " \t\r\n";
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    at = std::min(text.find_first_of(kBlank, at), text.size());
    at = std::min(text.find_first_not_of(kBlank, at), text.size());
  }
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return true;
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    const bool doubled = quote == '\'' && text.substr(at, 2) == "''";
    if (doubled || (quote == '"' && text[at] == '\\'))
      ++at;
    else if (text[at] == quote)
      return true;
  }
  return false;
}

// How much a value holds. Anchored values are copied for each alias: this is what a bomb multiplies.
struct Weight {
  std::size_t nodes = 0;
  std::size_t bytes = 0;  // of text
  int depth = 0;          // 1 for a scalar

  void add(const Weight& part) {
    nodes += part.nodes;
    bytes += part.bytes;
    depth = std::max(depth, part.depth + 1);
  }
};

// Builds our tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& name, Diagnostics& diagnostics)
      : text_(text), name_(name), diagnostics_(diagnostics) {}

  // nullopt for a text without any document.
  [[nodiscard]] std::optional<YamlNode> take() { return std::move(root_); }
  [[nodiscard]] bool ok() const { return mistakes_ == 0; }
  // Is all there that the text says, but for what it says again? Without what a merge key brings it is not.
  [[nodiscard]] bool is_whole() const { return !merges_; }

  void report_syntax(const YAML::Exception& error);

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    require_closed(mark, style);
    open(node(YamlNode::Kind::kSequence, mark), tag, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    require_closed(mark, style);
    open(node(YamlNode::Kind::kMap, mark), tag, anchor, style);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or mapping whose end has not come yet.
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool flow = false;  // written with brackets
    Weight weight;
    std::optional<YamlEntry> pending;                 // a key that waits for its value
    std::map<std::string, SourceLocation> seen = {};  // keys of a mapping
    bool drop = false;                                // the pending key was refused: forget its value
  };
  struct Anchored {
    YamlNode node;
    Weight weight;
  };

  [[nodiscard]] SourceLocation place(const YAML::Mark& mark) const {
    return {
        .file = name_, .line = mark.line + 1, .column = mark.column + 1};  // the one place where 1 is added
  }
  [[nodiscard]] YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) const {
    YamlNode result;
    result.kind = kind;
    result.where = place(mark);
    return result;
  }
  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::kMap && !open_.back().pending;
  }
  [[nodiscard]] std::string path() const;

  void report(Diagnostic diagnostic);
  [[nodiscard]] std::optional<Diagnostic> missing_space(const SourceLocation& stopped) const;
  [[noreturn]] void stop(Diagnostic diagnostic);
  void check_tag(const SourceLocation& where, const std::string& tag);
  void require_closed(const YAML::Mark& mark, YAML::EmitterStyle::value style);
  void require_value_place(const SourceLocation& where);
  void spend(const Weight& weight, const SourceLocation& where);
  void take_key(const SourceLocation& where, const std::string& key);
  void open(YamlNode container, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style);
  void close();
  void remember(YAML::anchor_t anchor, const YamlNode& value, const Weight& weight);
  void place_value(YamlNode value, const Weight& weight);

  std::string_view text_;
  const std::string& name_;
  Diagnostics& diagnostics_;
  std::size_t mistakes_ = 0;
  bool started_ = false, merges_ = false;
  std::optional<YamlNode> root_;
  std::vector<Frame> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Weight spent_;
};

std::string TreeBuilder::path() const {
  std::string path;
  for (const Frame& frame : open_) {
    const bool list = frame.node.kind == YamlNode::Kind::kSequence;
    if (!list && !frame.pending) break;
    if (!path.empty()) path += '.';
    path += list ? fmt::format("{}", frame.node.items.size()) : frame.pending->key;
  }
  return path;
}

void TreeBuilder::report(Diagnostic diagnostic) {
  const SourceLocation where = diagnostic.where;
  diagnostics_.error(std::move(diagnostic));
  if (++mistakes_ < kMaxMistakes) return;
  diagnostics_.error({.code = "too-many-errors",
                      .where = where,
                      .message = fmt::format("{} mistakes so far; the rest was not read", kMaxMistakes)});
  throw ReadingStopped{};
}

void TreeBuilder::stop(Diagnostic diagnostic) {
  ++mistakes_;
  diagnostics_.error(std::move(diagnostic));
  throw ReadingStopped{};
}

void TreeBuilder::check_tag(const SourceLocation& where, const std::string& tag) {
  const bool plain = tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str";
  if (plain) return;
  report({.code = "tag",
          .where = where,
          .path = path(),
          .message = fmt::format("the tag '{}' is not read", tag),
          .hint = "leave it out: the reader knows what each key holds"});
}

void TreeBuilder::require_value_place(const SourceLocation& where) {
  if (!expects_key()) return;
  stop({.code = "bad-key",
        .where = where,
        .path = path(),
        .message = "a key must be plain text, not a list, a mapping, an alias or nothing",
        .hint = "if this was meant as a value, a closing bracket is missing"});
}

void TreeBuilder::spend(const Weight& weight, const SourceLocation& where) {
  const int depth = static_cast<int>(open_.size()) + weight.depth;
  if (depth > kMaxYamlDepth) {
    stop({.code = "too-deep",
          .where = where,
          .message = fmt::format("values are nested deeper than {}", kMaxYamlDepth)});
  }
  spent_.nodes += weight.nodes;
  spent_.bytes += weight.bytes;
  if (spent_.nodes <= kMaxYamlNodes && spent_.bytes <= kMaxYamlFileBytes) return;
  stop({.code = "too-many-values",
        .where = where,
        .message = spent_.nodes > kMaxYamlNodes
                       ? fmt::format("more than {} values, aliases expanded", kMaxYamlNodes)
                       : fmt::format("more than {} MiB of text, aliases expanded", kMaxYamlFileBytes >> 20),
        .hint = "split the file, or use fewer aliases"});
}

void TreeBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (!std::exchange(started_, true)) return;
  const SourceLocation where = place(mark);
  const std::string_view line = line_of(text_, where.line);
  const bool marked = line.starts_with("---") || line.starts_with("%");
  stop({.code = "several-documents",
        .where = where,
        .message = marked ? "a second document begins here" : "there is text after the end of the document",
        .hint = marked ? "one document per file: put the second one into a file of its own" : ""});
}

void TreeBuilder::take_key(const SourceLocation& where, const std::string& key) {
  Frame& frame = open_.back();
  const std::string parent = path();
  const std::string full = parent.empty() ? key : fmt::format("{}.{}", parent, key);
  spend({.nodes = 0, .bytes = key.size(), .depth = 0}, where);
  frame.weight.bytes += key.size();
  frame.pending = YamlEntry{.key = key, .where = where};
  frame.drop = false;
  if (key == "<<") {
    frame.drop = merges_ = true;
    report({.code = "merge-key",
            .where = where,
            .path = parent,
            .message = "the merge key '<<' is not read",
            .hint = "write the keys out; an alias may stand for a whole value: key: *name"});
    return;
  }
  const auto [first, is_new] = frame.seen.emplace(key, where);
  if (is_new) return;
  frame.drop = true;
  report({.code = "duplicate-key",
          .where = where,
          .path = full,
          .message = "is given twice",
          .hint = "keep one of the two",
          .notes = {{.where = first->second, .message = "first given here"}}});
}

// Where a text ends inside the bracket that it begins with, yaml-cpp takes what is in it for a key.
void TreeBuilder::require_closed(const YAML::Mark& mark, YAML::EmitterStyle::value style) {
  if (!expects_key() || style != YAML::EmitterStyle::Flow) return;
  const std::string_view rest = text_.substr(std::min(static_cast<std::size_t>(mark.pos), text_.size()));
  int open = 0;
  for (const char c : rest) {
    if (c == '{' || c == '[') ++open;
    if ((c == '}' || c == ']') && --open == 0) return;
  }
  const bool map = rest.starts_with('{');
  stop({.code = "yaml-syntax",
        .where = place(mark),
        .message = map ? "this '{' is never closed" : "this '[' is never closed",
        .hint = map ? "add the '}'" : "add the ']'"});
}

void TreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  require_value_place(place(mark));
  YamlNode null = node(YamlNode::Kind::kNull, mark);
  // Where nothing is written, yaml-cpp names the next thing in the file; the key is nearer.
  const auto at = static_cast<std::size_t>(mark.pos);
  const bool written = at < text_.size() && (text_[at] == '~' || text_[at] == 'n' || text_[at] == 'N');
  if (!open_.empty() && open_.back().pending) {
    const SourceLocation& key = open_.back().pending->where;
    if (!written || key.line != null.where.line) null.where = key;
  }
  const Weight weight{.nodes = 1, .bytes = 0, .depth = 1};
  spend(weight, null.where);
  remember(anchor, null, weight);
  place_value(std::move(null), weight);
}

void TreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& value) {
  const SourceLocation where = place(mark);
  check_tag(where, tag);
  if (tag == "!" && !quote_is_closed(text_, static_cast<std::size_t>(mark.pos))) {
    stop({.code = "yaml-syntax",
          .where = where,
          .path = path(),
          .message = "this quote is never closed",
          .hint = "close it; a quote inside a text is written \\\" or ''"});
  }
  if (value.find('\0') != std::string::npos) {
    stop({.code = "not-text",
          .where = where,
          .path = path(),
          .message = "a text cannot hold the character \\0"});
  }
  YamlNode scalar = node(YamlNode::Kind::kScalar, mark);
  scalar.text = value;
  scalar.quoted = tag != "?" && !tag.empty();
  const Weight weight{.nodes = 1, .bytes = value.size(), .depth = 1};
  if (expects_key()) {
    remember(anchor, scalar, weight);
    return take_key(where, value);
  }
  spend(weight, where);
  remember(anchor, scalar, weight);
  place_value(std::move(scalar), weight);
}

void TreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const SourceLocation where = place(mark);
  require_value_place(where);
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    stop({.code = "alias-loop",
          .where = where,
          .path = path(),
          .message = "this alias stands inside the value that it names"});
  }
  const auto& [target, weight] = found->second;
  spend(weight, where);
  YamlNode copy = target;
  copy.defined_at = target.where;
  copy.where = where;
  place_value(std::move(copy), weight);
}

void TreeBuilder::open(YamlNode container, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) {
  require_value_place(container.where);
  check_tag(container.where, tag);
  const Weight weight{.nodes = 1, .bytes = 0, .depth = 1};
  spend(weight, container.where);
  open_.push_back({.node = std::move(container),
                   .anchor = anchor,
                   .flow = style == YAML::EmitterStyle::Flow,
                   .weight = weight,
                   .pending = {}});
}

void TreeBuilder::close() {
  SC_CHECK(!open_.empty(), "yaml-cpp closed what it had not opened");
  Frame frame = std::move(open_.back());
  open_.pop_back();
  remember(frame.anchor, frame.node, frame.weight);
  place_value(std::move(frame.node), frame.weight);
}

void TreeBuilder::remember(YAML::anchor_t anchor, const YamlNode& value, const Weight& weight) {
  if (anchor == YAML::NullAnchor) return;
  spend({.nodes = weight.nodes, .bytes = weight.bytes, .depth = 0},
        value.where);  // the copy costs memory, too
  anchors_.insert_or_assign(anchor, Anchored{value, weight});
}

void TreeBuilder::place_value(YamlNode value, const Weight& weight) {
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Frame& parent = open_.back();
  parent.weight.add(weight);
  if (parent.node.kind == YamlNode::Kind::kSequence) {
    parent.node.items.push_back(std::move(value));
    return;
  }
  SC_CHECK(parent.pending.has_value(), "yaml-cpp gave a value without a key");
  parent.pending->value = std::move(value);
  if (!parent.drop) parent.node.entries.push_back(std::move(*parent.pending));
  parent.pending.reset();
}

// `nodes:4` is one word, and the key behind it has no place: the mistake is the line before, or one further up
// that is blank.
std::optional<Diagnostic> TreeBuilder::missing_space(const SourceLocation& stopped) const {
  for (int number = stopped.line - 1; number > 0; --number) {
    const std::string_view line = line_of(text_, number);
    const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
    if (begin == line.size()) continue;
    const std::size_t colon = colon_without_space(line.substr(begin));
    if (colon == std::string_view::npos) return std::nullopt;
    return Diagnostic{.code = "yaml-syntax",
                      .where = {.file = name_, .line = number, .column = static_cast<int>(begin + colon) + 1},
                      .message = "a space is missing behind this ':'",
                      .hint = "write `key: value`"};
  }
  return std::nullopt;
}

void TreeBuilder::report_syntax(const YAML::Exception& error) {
  SourceLocation where = place(error.mark);
  ++mistakes_;
  if (const auto tab = tab_in_indentation(line_of(text_, where.line)); tab != std::string_view::npos) {
    where.column = static_cast<int>(tab) + 1;
    diagnostics_.error({.code = "yaml-tab",
                        .where = where,
                        .message = "a tab in the indentation",
                        .hint = "YAML indents with spaces only"});
    return;
  }
  if (error.msg.starts_with(YAML::ErrorMsg::MAP_VALUE))
    if (auto missing = missing_space(where)) return diagnostics_.error(*std::move(missing));
  const auto help = std::ranges::find_if(
      kSyntaxHelp, [&](const SyntaxHelp& candidate) { return error.msg.starts_with(candidate.theirs); });
  const bool known = help != kSyntaxHelp.end();
  // For a bracket that is never closed yaml-cpp gives no place: ours is the innermost open one.
  const bool unclosed =
      error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
  const auto bracket =
      std::find_if(open_.rbegin(), open_.rend(), [](const Frame& frame) { return frame.flow; });
  if (unclosed && bracket != open_.rend()) where = bracket->node.where;
  diagnostics_.error({.code = "yaml-syntax",
                      .where = where,
                      .message = known ? help->message : error.msg,
                      .hint = known ? help->hint : ""});
}

// JSON, which is YAML to our users, writes a character beyond U+FFFF as two escapes. yaml-cpp refuses them, our
// own reader of JSON does not. Nothing where the mistake is another or the text is no JSON.
std::optional<YamlNode> read_as_json(const YAML::Exception& error, std::string_view text,
                                     const std::string& name) {
  if (!error.msg.starts_with(YAML::ErrorMsg::INVALID_UNICODE)) return std::nullopt;
  Diagnostics ignored;
  return parse_json(text, name, ignored);
}

std::optional<YamlNode> parse(std::string_view text, const std::string& name, bool flawed_too,
                              Diagnostics& diagnostics) {
  if (text.size() > kMaxYamlFileBytes) {
    diagnostics.error(detail::yaml_too_large(name));
    return std::nullopt;
  }
  if (auto binary = find_binary(text, name)) {
    diagnostics.error(std::move(*binary));
    return std::nullopt;
  }
  text = without_byte_order_mark(text);

  TreeBuilder builder(text, name, diagnostics);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const ReadingStopped&) {
    return std::nullopt;  // reported where it was found
  } catch (const YAML::Exception& error) {
    if (builder.ok())
      if (auto json = read_as_json(error, text, name)) return json;
    builder.report_syntax(error);
    return std::nullopt;
  }
  std::optional<YamlNode> root = builder.take();
  if (!root) {
    diagnostics.error({.code = "empty-file",
                       .where = {.file = name, .line = 1, .column = 1},
                       .message = "the file is empty",
                       .hint = {}});
  }
  return builder.ok() || (flawed_too && builder.is_whole()) ? std::move(root) : std::nullopt;
}

}  // namespace

Diagnostic detail::yaml_too_large(const std::string& name) {
  return {.code = "file-too-large",
          .where = {.file = name},
          .message = fmt::format("is larger than {} MiB", kMaxYamlFileBytes >> 20),
          .hint = "scenarios and profiles have kilobytes; is this the right file?"};
}

std::optional<YamlNode> parse_yaml(std::string_view text, const std::string& name, Diagnostics& diagnostics) {
  return parse(text, name, false, diagnostics);
}

std::optional<YamlNode> parse_flawed_yaml(std::string_view text, const std::string& name,
                                          Diagnostics& diagnostics) {
  return parse(text, name, true, diagnostics);
}

}  // namespace stagecraft
