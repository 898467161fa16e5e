// Divisors, and valid whole numbers near an invalid one, for hints.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// The product of numbers >= 0, or the largest int64 where it would not fit: comparisons stay right.
[[nodiscard]] std::int64_t saturating_product(std::initializer_list<std::int64_t> factors);

// Ascending; of n >= 1.
[[nodiscard]] std::vector<std::int64_t> divisors_of(std::int64_t n);

// The nearest number below `from` (at least 1) and the nearest above it (at most `last`) that `legal`
// accepts, ascending; looks at 10,000 numbers on either side at most.
[[nodiscard]] std::vector<std::int64_t> nearest_legal(std::int64_t from, std::int64_t last,
                                                      const std::function<bool(std::int64_t)>& legal);

// "1, 2 or 4"; empty for no numbers.
[[nodiscard]] std::string any_of(std::span<const std::int64_t> numbers);
// "1, 2 or 4 would"; `otherwise` for no numbers.
[[nodiscard]] std::string would(std::span<const std::int64_t> numbers, std::string_view otherwise);

}  // namespace stagecraft
