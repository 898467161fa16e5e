#include "sim/lower/traffic.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {

void Traffic::add(PatternId pattern, double bytes) {
  SC_CHECK(bytes >= 0, "traffic is not negative");
  if (bytes == 0) return;
  const auto at = std::lower_bound(parts_.begin(), parts_.end(), pattern,
                                   [](const Part& part, PatternId id) { return part.pattern < id; });
  if (at != parts_.end() && at->pattern == pattern)
    at->bytes += bytes;
  else
    parts_.insert(at, {.pattern = pattern, .bytes = bytes});
}

void Traffic::add(const Traffic& other, double times) {
  for (const Part& part : other.parts_) add(part.pattern, part.bytes * times);
}

void Exchanges::add(const Exchanges& other, std::int64_t times) {
  traffic.add(other.traffic, static_cast<double>(times));
  time += times * other.time;
  transfer += times * other.transfer;
  launches += times * other.launches;
}

void add(PassExchanges& sum, const PassExchanges& other, std::int64_t times) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i].add(other[i], times);
}

double Traffic::bytes() const {
  double sum = 0;
  for (const Part& part : parts_) sum += part.bytes;
  return sum;
}

}  // namespace stagecraft
