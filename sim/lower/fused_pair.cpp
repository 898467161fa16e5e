#include "sim/lower/fused_pair.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"

namespace stagecraft {
namespace {

constexpr std::array kTraffic = {Category::kTensorComm, Category::kContextComm, Category::kExpertComm};

Duration traffic_of(const PassPrice& pass) {
  Duration sum{};
  for (const Category category : kTraffic) sum += pass.of(category);
  return sum;
}

bool is_traffic(std::int32_t category) {
  return std::ranges::any_of(kTraffic, [&](Category c) { return static_cast<std::int32_t>(c) == category; });
}

// Of `time` the part that a factor of at most 1 leaves, rounded down: a sum of parts never grows.
Duration scaled(Duration time, double factor) {
  return Duration(static_cast<std::int64_t>(std::floor(factor * static_cast<double>(time.count()))));
}

Duration hidden(const PassPrice& pass, Duration beside, const FusedPairRule& rule) {
  return std::min(scaled(traffic_of(pass), 1 / rule.slowdown), beside);
}

}  // namespace

PairTimes fused_pair_times(const PassPrice& first, const PassPrice& second, const FusedPairRule& rule) {
  SC_CHECK(rule.slowdown >= 1, "compute is not faster beside traffic");
  if (rule.share) {
    const auto share = [&](Duration whole) {
      return Duration(std::llround(*rule.share * static_cast<double>(whole.count())));
    };
    const Duration both = share(first.total() + second.total());
    const Duration of_first = std::min(share(first.total()), both);
    return {.first = of_first, .second = both - of_first};
  }
  return {.first = first.total() - hidden(first, second.total() - traffic_of(second), rule),
          .second = second.total() - hidden(second, first.total() - traffic_of(first), rule)};
}

Duration least_in_pair(const PassPrice& pass, const FusedPairRule& rule) {
  // A pair is rounded once, and one of its passes takes what the other leaves.
  if (rule.share)
    return std::max(Duration::zero(), scaled(pass.total(), std::min(1.0, *rule.share)) - Duration(1));
  // A nanosecond more: several prices may make one pass, which is rounded once.
  const Duration traffic = traffic_of(pass);
  return pass.total() - std::min(traffic, scaled(traffic, 1 / rule.slowdown) + Duration(1));
}

std::vector<TaskPart> parts_in_pair(const PassPrice& pass, Duration lasts, const FusedPairRule& rule) {
  std::vector<TaskPart> parts = pass.parts();
  if (parts.empty()) return parts;
  const Duration kept = rule.share ? Duration::zero() : pass.total() - traffic_of(pass);
  const Duration whole = pass.total() - kept;
  Duration rest = lasts - kept;
  const double share = whole > Duration::zero() ? to_seconds(rest) / to_seconds(whole) : 1;
  TaskPart* last = nullptr;
  for (TaskPart& part : parts) {
    if (!rule.share && !is_traffic(part.category)) continue;
    part.time = std::min(rest, scaled(part.time, share));
    rest -= part.time;
    last = &part;
  }
  if (last != nullptr) last->time += rest;
  return parts;
}

}  // namespace stagecraft
