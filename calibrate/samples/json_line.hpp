// The part of JSON that a line of samples uses: objects, strings and numbers.
//
// Our own, since the GPU suite must build with a compiler and nothing else. Strict: what RFC 8259 does not
// allow is refused, and so are arrays, booleans and null, which no sample holds, and a key that stands twice.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

// Says what is wrong and in which column (from 1).
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class JsonValue {
 public:
  enum class Kind { kObject, kString, kNumber };

  explicit JsonValue(std::vector<std::pair<std::string, JsonValue>> members)
      : kind_(Kind::kObject), members_(std::move(members)) {}
  JsonValue(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  [[nodiscard]] bool is_object() const { return kind_ == Kind::kObject; }
  [[nodiscard]] bool is_string() const { return kind_ == Kind::kString; }
  // The members of an object, in the order of the file.
  [[nodiscard]] const std::vector<std::pair<std::string, JsonValue>>& members() const { return members_; }
  // The text of a string, unescaped, or of a number, as written.
  [[nodiscard]] const std::string& text() const { return text_; }
  // Throw JsonError, naming `key`, where the value is no number, not finite, no integer, or too large.
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key) const;

 private:
  Kind kind_;
  std::string text_;
  std::vector<std::pair<std::string, JsonValue>> members_;
};

// Reads exactly one object; text after it is refused. Throws JsonError.
[[nodiscard]] JsonValue parse_json(std::string_view line);

// The shortest decimal form that reads back to the same bits. Throws std::invalid_argument on NaN and
// infinities.
[[nodiscard]] std::string shortest(double value);

// Writes one object on one line.
class JsonLineWriter {
 public:
  void text(std::string_view key, std::string_view value);
  void integer(std::string_view key, std::int64_t value);
  void number(std::string_view key, double value);
  void begin(std::string_view key);  // a nested object, until end()
  void end();
  [[nodiscard]] std::string line() &&;

 private:
  void key(std::string_view name);
  std::string out_ = "{";
  bool first_ = true;
};

}  // namespace stagecraft
