#include "base/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace stagecraft {

namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::size_t kMaxDuplicates = 100;  // of one text: nobody reads more

// A mistake after which reading on makes no sense. Never leaves this file.
struct JsonStopped {};

// Whether a number or a name may have the character, or what somebody took for one.
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

// source  RFC 8259, section 6.
bool is_number(std::string_view word) {
  const auto digits = [&word] {
    const std::size_t length = std::min(word.find_first_not_of("0123456789"), word.size());
    word.remove_prefix(length);
    return length > 0;
  };
  const auto skip = [&word](std::string_view any_of) {
    const bool found = !word.empty() && any_of.find(word.front()) != std::string_view::npos;
    if (found) word.remove_prefix(1);
    return found;
  };
  skip("-");
  if (!skip("0") && !digits()) return false;
  if (skip(".") && !digits()) return false;
  if (skip("eE")) {
    skip("+-");
    if (!digits()) return false;
  }
  return word.empty();
}

void append_utf8(std::uint32_t point, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

// Reads a text from its front to its end.
class JsonReader {
 public:
  JsonReader(std::string_view text, const std::string& name, Diagnostics& diagnostics)
      : rest_(text), where_{.file = name, .line = 1, .column = 1}, diagnostics_(diagnostics) {}

  YamlNode document();

 private:
  [[noreturn]] void stop(const SourceLocation& where, std::string code, std::string message,
                         std::string hint = {});
  void report_duplicate(const YamlEntry& entry, const SourceLocation& first);
  [[nodiscard]] char next() const { return rest_.empty() ? '\0' : rest_.front(); }
  [[nodiscard]] std::string what_stands_here() const;
  void advance(std::size_t bytes);
  void skip_blanks();
  bool take(char wanted);

  YamlNode value(int depth);
  YamlNode object(int depth);
  YamlNode array(int depth);
  YamlNode word();
  std::string text();
  std::uint32_t escape();
  std::uint32_t four_digits(const SourceLocation& begin);

  std::string_view rest_;
  SourceLocation where_;
  Diagnostics& diagnostics_;
  std::size_t nodes_ = 0;
  std::size_t duplicates_ = 0;
};

void JsonReader::stop(const SourceLocation& where, std::string code, std::string message, std::string hint) {
  diagnostics_.error(
      {.code = std::move(code), .where = where, .message = std::move(message), .hint = std::move(hint)});
  throw JsonStopped{};
}

std::string JsonReader::what_stands_here() const {
  if (rest_.empty()) return "the end of the file";
  const std::size_t length = utf8_length(rest_);
  if (length == 0)
    return fmt::format("byte 0x{:02x}, which is not UTF-8", static_cast<unsigned char>(rest_.front()));
  return in_quotes(rest_.substr(0, length));
}

// On this line: a line break is passed by skip_blanks alone.
void JsonReader::advance(std::size_t bytes) {
  rest_.remove_prefix(bytes);
  where_.column += static_cast<int>(bytes);
}

void JsonReader::skip_blanks() {
  while (!rest_.empty()) {
    const char c = rest_.front();
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') break;
    advance(1);
    if (c != '\n') continue;
    ++where_.line;
    where_.column = 1;
  }
  if (next() == '#' || rest_.starts_with("//") || rest_.starts_with("/*"))
    stop(where_, "json-comment", "JSON has no comments", "remove it");
}

bool JsonReader::take(char wanted) {
  skip_blanks();
  if (rest_.empty() || rest_.front() != wanted) return false;
  advance(1);
  return true;
}

YamlNode JsonReader::document() {
  skip_blanks();
  if (rest_.empty()) stop(where_, "empty-file", "the file is empty");
  YamlNode root = value(1);
  skip_blanks();
  if (!rest_.empty())
    stop(where_, "json-syntax", fmt::format("{} stands after the end of the document", what_stands_here()));
  if (duplicates_ > 0) throw JsonStopped{};
  return root;
}

YamlNode JsonReader::value(int depth) {
  skip_blanks();
  const SourceLocation where = where_;
  if (depth > kMaxYamlDepth)
    stop(where, "too-deep", fmt::format("values are nested deeper than {}", kMaxYamlDepth));
  if (++nodes_ > kMaxYamlNodes)
    stop(where, "too-many-values", fmt::format("more than {} values", kMaxYamlNodes));
  YamlNode node;
  if (next() == '{') {
    node = object(depth);
  } else if (next() == '[') {
    node = array(depth);
  } else if (next() == '"') {
    node.kind = YamlNode::Kind::kScalar;
    node.quoted = true;
    node.text = text();
  } else {
    node = word();
  }
  node.where = where;
  return node;
}

void JsonReader::report_duplicate(const YamlEntry& entry, const SourceLocation& first) {
  diagnostics_.error({.code = "duplicate-key",
                      .where = entry.where,
                      .path = entry.key,
                      .message = "is given twice",
                      .hint = "keep one of the two",
                      .notes = {{.where = first, .message = "first given here"}}});
  if (++duplicates_ < kMaxDuplicates) return;
  stop(entry.where, "too-many-errors",
       fmt::format("{} mistakes so far; the rest was not read", kMaxDuplicates));
}

YamlNode JsonReader::object(int depth) {
  const SourceLocation begin = where_;
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  std::map<std::string, SourceLocation> seen;
  advance(1);
  if (take('}')) return map;
  do {
    skip_blanks();
    if (rest_.empty()) stop(begin, "json-syntax", "this '{' is never closed", "add the '}'");
    if (next() != '"')
      stop(where_, "json-syntax",
           fmt::format("expected a key in double quotes, found {}", what_stands_here()),
           next() == '}' ? "remove the comma before it" : "");
    YamlEntry entry{.where = where_};
    entry.key = text();
    if (!take(':'))
      stop(where_, "json-syntax",
           fmt::format("expected ':' after the key {}, found {}", in_quotes(entry.key), what_stands_here()));
    entry.value = value(depth + 1);
    const auto [first, is_new] = seen.emplace(entry.key, entry.where);
    if (is_new)
      map.entries.push_back(std::move(entry));
    else
      report_duplicate(entry, first->second);
  } while (take(','));
  if (take('}')) return map;
  if (rest_.empty()) stop(begin, "json-syntax", "this '{' is never closed", "add the '}'");
  stop(where_, "json-syntax", fmt::format("expected ',' or '}}', found {}", what_stands_here()));
}

YamlNode JsonReader::array(int depth) {
  const SourceLocation begin = where_;
  YamlNode list;
  list.kind = YamlNode::Kind::kSequence;
  advance(1);
  if (take(']')) return list;
  do {
    skip_blanks();
    if (next() == ']')
      stop(where_, "json-syntax", "expected a value, found ']'", "remove the comma before it");
    if (rest_.empty()) stop(begin, "json-syntax", "this '[' is never closed", "add the ']'");
    list.items.push_back(value(depth + 1));
  } while (take(','));
  if (take(']')) return list;
  if (rest_.empty()) stop(begin, "json-syntax", "this '[' is never closed", "add the ']'");
  stop(where_, "json-syntax", fmt::format("expected ',' or ']', found {}", what_stands_here()));
}

// A number, true, false or null.
YamlNode JsonReader::word() {
  const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_word);
  const std::string_view written = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
  if (written.empty())
    stop(where_, "json-syntax", fmt::format("expected a value, found {}", what_stands_here()));
  YamlNode node;
  if (written != "null") {
    const bool python = written == "NaN" || written == "Infinity" || written == "-Infinity";
    if (written != "true" && written != "false" && !python && !is_number(written)) {
      const bool spelt = written == "True" || written == "False" || written == "None";
      stop(where_, "json-syntax", fmt::format("{} is no JSON value", in_quotes(written)),
           spelt ? "JSON writes true, false and null" : "text stands in double quotes");
    }
    node.kind = YamlNode::Kind::kScalar;
    node.text = written;
  }
  advance(written.size());
  return node;
}

std::string JsonReader::text() {
  const SourceLocation begin = where_;
  std::string out;
  advance(1);
  while (next() != '"' || rest_.empty()) {
    if (rest_.empty()) stop(begin, "json-syntax", "the text ends inside a quoted value", "close the quote");
    const auto byte = static_cast<unsigned char>(rest_.front());
    if (byte == '\n' || byte == '\r')
      stop(begin, "json-syntax", "the line ends inside a quoted value", "close the quote");
    if (byte < 0x20 || byte == 0x7f)
      stop(where_, "not-text", fmt::format("byte 0x{:02x} does not belong into a text", byte));
    if (byte == '\\') {
      const SourceLocation where = where_;
      const std::uint32_t point = escape();
      if (point == 0) stop(where, "not-text", "a text cannot hold the character \\0");
      append_utf8(point, out);
      continue;
    }
    const std::size_t length = utf8_length(rest_);
    if (length == 0)
      stop(where_, "not-utf8", fmt::format("byte 0x{:02x} is not UTF-8", byte),
           "save the file as UTF-8 text");
    out += rest_.substr(0, length);
    advance(length);
  }
  advance(1);
  return out;
}

// What the escape sequence at the front stands for.   source  RFC 8259, section 7.
std::uint32_t JsonReader::escape() {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  const SourceLocation begin = where_;
  advance(1);
  const char letter = next();
  const auto known = rest_.empty() ? std::string_view::npos : kLetters.find(letter);
  if (known != std::string_view::npos) {
    advance(1);
    return static_cast<unsigned char>(kMeant[known]);
  }
  if (letter != 'u')
    stop(begin, "json-syntax", fmt::format("'\\' cannot stand before {}", what_stands_here()),
         "write \\\\ for a backslash");
  std::uint32_t point = four_digits(begin);
  if (point >= 0xd800 && point < 0xdc00 && rest_.starts_with("\\u")) {
    advance(1);
    const std::uint32_t low = four_digits(begin);
    point = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00) : low;
  }
  if (point >= 0xd800 && point < 0xe000)
    stop(begin, "json-syntax", "half of a surrogate pair", "a character beyond U+FFFF takes two \\u escapes");
  return point;
}

// Reads the four digits of \uXXXX, from the `u` on.
std::uint32_t JsonReader::four_digits(const SourceLocation& begin) {
  advance(1);
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = next();
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!is_digit(lower) && !(lower >= 'a' && lower <= 'f'))
      stop(begin, "json-syntax", "\\u takes four hexadecimal digits");
    number = number * 16 + static_cast<std::uint32_t>(is_digit(lower) ? lower - '0' : lower - 'a' + 10);
    advance(1);
  }
  return number;
}

}  // namespace

std::optional<YamlNode> parse_json(std::string_view text, const std::string& name, Diagnostics& diagnostics) {
  if (text.size() > kMaxYamlFileBytes) {
    diagnostics.error(detail::yaml_too_large(name));
    return std::nullopt;
  }
  if (text.starts_with(kGzip)) {
    diagnostics.error({.code = "gzip",
                       .where = {.file = name},
                       .message = "is compressed with gzip, which is not read",
                       .hint = "gunzip -c FILE | stagecraft … -"});
    return std::nullopt;
  }
  text = without_byte_order_mark(text);
  try {
    return JsonReader(text, name, diagnostics).document();
  } catch (const JsonStopped&) {
    return std::nullopt;  // reported where it was found
  }
}

}  // namespace stagecraft
