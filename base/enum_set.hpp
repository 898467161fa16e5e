// A set of values of an enum that counts 0, 1, 2, …, up to 31.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace stagecraft {

template <class Value>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<Value> values) {
    for (const Value value : values) bits_ |= bit(value);
  }
  [[nodiscard]] constexpr bool has(Value value) const { return (bits_ & bit(value)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }

  // What is in either, in both, and in the first alone.
  friend constexpr EnumSet operator|(EnumSet a, EnumSet b) { return EnumSet(a.bits_ | b.bits_); }
  friend constexpr EnumSet operator&(EnumSet a, EnumSet b) { return EnumSet(a.bits_ & b.bits_); }
  friend constexpr EnumSet operator-(EnumSet a, EnumSet b) { return EnumSet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(const EnumSet&, const EnumSet&) = default;

 private:
  constexpr explicit EnumSet(std::uint32_t bits) : bits_(bits) {}
  static constexpr std::uint32_t bit(Value value) { return std::uint32_t{1} << static_cast<unsigned>(value); }

  std::uint32_t bits_ = 0;
};

}  // namespace stagecraft
