// A 64-bit FNV-1a hash whose value is part of our tests: the same on every machine, compiler and thread
// count.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

class StableHash {
 public:
  template <std::integral T>
  StableHash& add(T number) {  // as 8 little-endian bytes, whatever the width of T
    auto bits = static_cast<std::uint64_t>(number);
    for (int i = 0; i < 8; ++i, bits >>= 8) mix(static_cast<unsigned char>(bits & 0xff));
    return *this;
  }
  StableHash& add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    return add(text.size());
  }

  [[nodiscard]] std::uint64_t value() const { return state_; }
  [[nodiscard]] std::string hex() const;  // 16 lower-case digits

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace stagecraft
