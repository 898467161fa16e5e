// JSON out: keys in the order written, numbers that read back to the same bits, one line.
//
// Streaming and deterministic: the shortest decimal form of a double that round-trips, never
// locale-dependent. NaN and infinities are bugs of ours: InternalError. Text is checked for UTF-8; invalid
// bytes become U+FFFD.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);  // inside an object, before each value

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(std::size_t number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(Duration time) { return value(to_seconds(time)); }  // seconds: name the key `_s`
  JsonWriter& value(Bytes bytes) { return value(bytes.count()); }       // bytes: name the key `_bytes`
  template <class T>
  JsonWriter& value(const std::vector<T>& items) {  // an array
    begin_array();
    for (const T& item : items) value(item);
    return end_array();
  }
  template <class T>
  JsonWriter& value(const std::optional<T>& item) {  // null where there is none
    return item ? value(*item) : null();
  }
  JsonWriter& null();

  template <class T>
  JsonWriter& field(std::string_view name, T&& item) {
    return key(name).value(std::forward<T>(item));
  }

  // The finished document. throws InternalError when an object or array is still open.
  [[nodiscard]] const std::string& str() const;

 private:
  void before_value();
  std::string out_;
  std::vector<char> open_;  // '{' or '['
  bool first_ = true;       // no comma yet at this level
  bool after_key_ = false;
};

}  // namespace stagecraft
