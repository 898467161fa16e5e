// Protocol Buffers read back, from the description of the encoding alone: the tests' own reader.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stagecraft::test {

struct WireField {
  std::uint32_t number = 0;
  std::uint32_t kind = 0;
  std::uint64_t value = 0;      // kinds 0 and 1
  std::string_view bytes = {};  // kind 2
};

// All fields of a message, in order. throws std::runtime_error when the bytes are no message.
[[nodiscard]] std::vector<WireField> read_message(std::string_view bytes);

// The first field of that number; 0 and empty where there is none.
[[nodiscard]] WireField first_of(const std::vector<WireField>& fields, std::uint32_t number);

}  // namespace stagecraft::test
