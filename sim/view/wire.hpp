// The wire format of Protocol Buffers, as far as traces need it: varints and length-delimited fields.
//
//   varint   seven bits a byte, least significant first, the eighth bit says that more follow; at most 10
//            bytes
//   field    varint of (number << 3 | kind), then the value; kind 0 a varint, 2 length and bytes
//   source   protobuf.dev, "Encoding"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

void append_varint(std::string& bytes, std::uint64_t value);

// A message under way. Fields stand in the order of the calls.
class WireMessage {
 public:
  WireMessage& number(std::uint32_t field, std::uint64_t value);
  WireMessage& text(std::uint32_t field, std::string_view value);
  WireMessage& message(std::uint32_t field, const WireMessage& value) { return text(field, value.bytes()); }
  // The message preceded by its length: the form of files with several messages.
  WireMessage& delimited(const WireMessage& value);

  void clear() { bytes_.clear(); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) { append_varint(bytes_, value); }
  std::string bytes_;
};

}  // namespace stagecraft
