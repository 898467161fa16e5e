#include "base/json.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace stagecraft {

namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte == 0x7f)
    out += fmt::format("\\u{:04x}", byte);
  else
    out += c;
}

// Ends of lines to readers of text that go by Unicode: a document stays on one line for them too.
std::string_view escaped_line_end(std::string_view character) {
  if (character == "\u0085") return "\\u0085";
  if (character == "\u2028") return "\\u2028";
  return character == "\u2029" ? "\\u2029" : character;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0)
      out += "\xef\xbf\xbd";  // U+FFFD in place of one bad byte
    else if (length == 1)
      append_escaped(out, text.front());
    else
      out += escaped_line_end(text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

template <class T>
void append_number(std::string& out, T number) {
  char digits[32];  // the shortest form of any double has at most 24 characters
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), number);
  SC_CHECK(error == std::errc(), "a number does not fit into 32 characters");
  out.append(digits, end);
}

}  // namespace

void JsonWriter::before_value() {
  if (open_.empty()) {
    SC_CHECK(out_.empty(), "a JSON document holds one value");
  } else if (open_.back() == '{') {
    SC_CHECK(after_key_, "a JSON object needs a key before each value");
  } else if (!first_) {
    out_ += ',';
  }
  first_ = false;
  after_key_ = false;
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  out_ += '{';
  open_.push_back('{');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  SC_CHECK(!open_.empty() && open_.back() == '{' && !after_key_, "no JSON object to close here");
  out_ += '}';
  open_.pop_back();
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  out_ += '[';
  open_.push_back('[');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  SC_CHECK(!open_.empty() && open_.back() == '[', "no JSON array to close here");
  out_ += ']';
  open_.pop_back();
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  SC_CHECK(!open_.empty() && open_.back() == '{' && !after_key_, "a JSON key belongs into an object");
  if (!first_) out_ += ',';
  append_quoted(out_, name);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_quoted(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  SC_CHECK(std::isfinite(number), "JSON has no NaN and no infinity");
  before_value();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  before_value();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  before_value();
  out_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  out_ += "null";
  return *this;
}

const std::string& JsonWriter::str() const {
  SC_CHECK(open_.empty() && !out_.empty(), "the JSON document is not finished");
  return out_;
}

}  // namespace stagecraft
