#include "sim/view/wire.hpp"

namespace stagecraft {
namespace {

enum Kind : std::uint32_t { kVarint = 0, kLength = 2 };

}  // namespace

void append_varint(std::string& bytes, std::uint64_t value) {
  char digits[10];
  std::size_t count = 0;
  for (; value >= 0x80; value >>= 7) digits[count++] = static_cast<char>((value & 0x7f) | 0x80);
  digits[count++] = static_cast<char>(value);
  bytes.append(digits, count);
}

WireMessage& WireMessage::number(std::uint32_t field, std::uint64_t value) {
  varint(field << 3 | kVarint);
  varint(value);
  return *this;
}

WireMessage& WireMessage::text(std::uint32_t field, std::string_view value) {
  varint(field << 3 | kLength);
  varint(value.size());
  bytes_.append(value);
  return *this;
}

WireMessage& WireMessage::delimited(const WireMessage& value) {
  varint(value.bytes().size());
  bytes_.append(value.bytes());
  return *this;
}

}  // namespace stagecraft
