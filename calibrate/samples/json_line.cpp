#include "calibrate/samples/json_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace stagecraft {
namespace {

constexpr int kDeepest = 4;  // a sample has two levels; deeper text is an attack on the stack, not a sample

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  JsonValue whole() {
    skip_space();
    JsonValue value = object(1);
    skip_space();
    if (at_ != text_.size()) fail("text after the object");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw JsonError("column " + std::to_string(at_ + 1) + ": " + what);
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool digit() const { return peek() >= '0' && peek() <= '9'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(at_ == text_.size() ? "the line ends too early" : std::string("expected '") + c + "'");
  }

  JsonValue object(int depth) {
    if (depth > kDeepest) fail("nested too deeply");
    std::vector<std::pair<std::string, JsonValue>> members;
    expect('{');
    skip_space();
    if (take('}')) return JsonValue(std::move(members));
    do {
      skip_space();
      std::string key = string();
      if (std::ranges::any_of(members, [&](const auto& member) { return member.first == key; }))
        fail("the key \"" + key + "\" stands twice");
      skip_space();
      expect(':');
      skip_space();
      JsonValue member = value(depth);
      members.emplace_back(std::move(key), std::move(member));
      skip_space();
    } while (take(','));
    expect('}');
    return JsonValue(std::move(members));
  }

  JsonValue value(int depth) {
    if (peek() == '{') return object(depth + 1);
    if (peek() == '"') return {JsonValue::Kind::kString, string()};
    if (peek() == '-' || digit()) return {JsonValue::Kind::kNumber, number()};
    fail(at_ == text_.size() ? "the line ends too early" : "expected a string, a finite number or an object");
  }

  std::string number() {
    const std::size_t start = at_;
    take('-');
    if (!take('0')) digits();
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits();
    }
    return std::string(text_.substr(start, at_ - start));
  }
  void digits() {
    if (!digit()) fail("expected a digit");
    while (digit()) ++at_;
  }

  std::string string() {
    std::string out;
    expect('"');
    while (!take('"')) {
      if (at_ == text_.size()) fail("the line ends inside a string");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character inside a string");
      ++at_;
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
    return out;
  }
  void escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (take('u')) return append_utf8(out, code_point());
    const std::size_t which = at_ < text_.size() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) fail("an escape that JSON does not know");
    ++at_;
    out += kMeanings[which];
  }
  std::uint32_t code_point() {
    const std::uint32_t high = four_hex();
    if (high >= 0xDC00 && high < 0xE000) fail("half a surrogate pair");
    if (high < 0xD800 || high >= 0xE000) return high;
    if (!take('\\') || !take('u')) fail("half a surrogate pair");
    const std::uint32_t low = four_hex();
    if (low < 0xDC00 || low >= 0xE000) fail("half a surrogate pair");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }
  std::uint32_t four_hex() {
    std::uint32_t code = 0;
    const std::string_view hex = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (hex.size() != 4 || error != std::errc() || end != hex.data() + 4)
      fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (byte < 0x20)
      ((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15];
    else
      out += c;
  }
  return out += '"';
}

}  // namespace

double JsonValue::number(std::string_view key) const {
  if (kind_ != Kind::kNumber) throw JsonError("\"" + std::string(key) + "\" must be a number");
  double value = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (error != std::errc() || end != text_.data() + text_.size() || !std::isfinite(value))
    throw JsonError("\"" + std::string(key) + "\" is " + text_ + ", which no double can hold");
  return value;
}

std::int64_t JsonValue::integer(std::string_view key) const {
  if (kind_ != Kind::kNumber) throw JsonError("\"" + std::string(key) + "\" must be a number");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (error != std::errc() || end != text_.data() + text_.size())
    throw JsonError("\"" + std::string(key) + "\" is " + text_ + ", a 64-bit integer is needed");
  return value;
}

JsonValue parse_json(std::string_view line) {
  return Parser(line).whole();
}

std::string shortest(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument("JSON holds no NaN and no infinity");
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  if (error != std::errc()) throw std::logic_error("a double needs at most 24 characters");
  return {buffer.data(), end};
}

void JsonLineWriter::key(std::string_view name) {
  if (!first_) out_ += ',';
  first_ = false;
  (out_ += quoted(name)) += ':';
}
void JsonLineWriter::text(std::string_view name, std::string_view value) {
  key(name);
  out_ += quoted(value);
}
void JsonLineWriter::integer(std::string_view name, std::int64_t value) {
  key(name);
  out_ += std::to_string(value);
}
void JsonLineWriter::number(std::string_view name, double value) {
  key(name);
  out_ += shortest(value);
}
void JsonLineWriter::begin(std::string_view name) {
  key(name);
  out_ += '{';
  first_ = true;
}
void JsonLineWriter::end() {
  out_ += '}';
  first_ = false;
}
std::string JsonLineWriter::line() && {
  return std::move(out_ += '}');
}

}  // namespace stagecraft
