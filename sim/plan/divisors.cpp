#include "sim/plan/divisors.hpp"

#include <algorithm>
#include <limits>

namespace stagecraft {

namespace {

constexpr std::int64_t kFarthest = 10'000;

}  // namespace

std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor == 0) return 0;
    const bool fits = product <= std::numeric_limits<std::int64_t>::max() / factor;
    product = fits ? product * factor : std::numeric_limits<std::int64_t>::max();
  }
  return product;
}

std::vector<std::int64_t> divisors_of(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d * d != n) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::vector<std::int64_t> nearest_legal(std::int64_t from, std::int64_t last,
                                        const std::function<bool(std::int64_t)>& legal) {
  std::vector<std::int64_t> found;
  const std::int64_t below = std::min(from - 1, last);
  const std::int64_t lowest = std::max<std::int64_t>(1, below - kFarthest);
  for (std::int64_t n = below; n >= lowest && found.empty(); --n)
    if (legal(n)) found.push_back(n);
  const std::int64_t highest = std::min(last, from + kFarthest);
  for (std::int64_t n = from + 1; n <= highest; ++n) {
    if (!legal(n)) continue;
    found.push_back(n);
    break;
  }
  return found;
}

std::string any_of(std::span<const std::int64_t> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " or " : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

std::string would(std::span<const std::int64_t> numbers, std::string_view otherwise) {
  return numbers.empty() ? std::string(otherwise) : any_of(numbers) + " would";
}

}  // namespace stagecraft
