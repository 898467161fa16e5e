// How many of its cases a property is tried on: all; under a sanitizer, where a case takes three to six times as long,
// some. Nothing else differs, and what runs there runs everywhere.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#ifndef __has_feature  // clang's
#define __has_feature(x) 0
#endif

namespace stagecraft {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Of so many random cases the first tenth.
constexpr int sampled_count(int all) {
  return kSanitized ? all / 10 : all;
}

// Of a grid's cases, counted in the order of its walk, every seventh: few axes have as many values.
constexpr bool is_sampled(std::size_t index) {
  return !kSanitized || index % 7 == 0;
}

template <class T>
std::vector<T> sampled(std::vector<T> all) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_sampled(i)) some.push_back(std::move(all[i]));
  return some;
}

}  // namespace stagecraft
