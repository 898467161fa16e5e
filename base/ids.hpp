// Typed dense ids, and vectors that only the right id can index.
//
// A TaskId and a StreamId are both small integers, and mixing them up compiles nowhere: `tasks[stream]` is a
// type error. Ids are dense from 0, so a table keyed by id is a plain vector and needs no hash.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace stagecraft {

// An int that is not negative, as an index of a vector.
[[nodiscard]] constexpr std::size_t as_index(int index) {
  return static_cast<std::size_t>(index);
}

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t value) : value_(value) {}

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return value_; }

  friend constexpr auto operator<=>(const Id&, const Id&) = default;

 private:
  std::uint32_t value_ = 0;
};

// A vector indexed by one kind of id. operator[] is unchecked, as in std::vector; at() checks.
template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T{}) : items_(size, value) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  decltype(auto) operator[](IdType id) { return items_[id.index()]; }
  decltype(auto) operator[](IdType id) const { return items_[id.index()]; }
  decltype(auto) at(IdType id) const { return items_.at(id.index()); }

  IdType push_back(T item) {
    SC_CHECK(items_.size() < UINT32_MAX, "ids are 32 bits wide");
    items_.push_back(std::move(item));
    return IdType(static_cast<std::uint32_t>(items_.size() - 1));
  }

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  void reserve(std::size_t n) { items_.reserve(n); }
  void resize(std::size_t n) { items_.resize(n); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  [[nodiscard]] const std::vector<T>& raw() const { return items_; }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace stagecraft
