#include "tests/sim/view/wire_reader.hpp"

#include <stdexcept>

namespace stagecraft::test {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    throw std::runtime_error("a varint of more than 64 bits");
  }

  std::uint64_t eight_bytes() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(8);
    for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }

  std::string_view take(std::size_t count) {
    if (count > rest_.size()) throw std::runtime_error("the bytes end within a field");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view rest_;
};

}  // namespace

std::vector<WireField> read_message(std::string_view bytes) {
  std::vector<WireField> fields;
  Reader reader(bytes);
  while (!reader.done()) {
    const std::uint64_t tag = reader.varint();
    WireField field{.number = static_cast<std::uint32_t>(tag >> 3),
                    .kind = static_cast<std::uint32_t>(tag & 7)};
    if (field.kind == 0) {
      field.value = reader.varint();
    } else if (field.kind == 1) {
      field.value = reader.eight_bytes();
    } else if (field.kind == 2) {
      field.bytes = reader.take(reader.varint());
    } else {
      throw std::runtime_error("a field of a kind that nobody writes");
    }
    fields.push_back(field);
  }
  return fields;
}

WireField first_of(const std::vector<WireField>& fields, std::uint32_t number) {
  for (const WireField& field : fields)
    if (field.number == number) return field;
  return {};
}

}  // namespace stagecraft::test
