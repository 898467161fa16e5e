#include "sim/lower/fused_pair.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace stagecraft {
namespace {

bool hides(Category category, const FusedPairRule& rule) {
  if (rule.neighbours) return category == Category::kExpertComm;
  return std::ranges::find(kInPass, category) != kInPass.end();
}

// Time of the traffic in a pass that its partner may hide, fully or in part.
Duration hidden_in_parts(const PassPrice& pass, const FusedPairRule& rule) {
  Duration sum{};
  for (const Category category : kInPass)
    if (hides(category, rule)) sum += pass.of(category);
  return sum;
}

// `time` times a factor of at most 1, rounded down, so that a sum of parts never grows.
Duration rounded_down(Duration time, double factor) {
  return Duration(static_cast<std::int64_t>(std::floor(factor * static_cast<double>(time.count()))));
}

// The traffic of a pass that enough compute of its partner hides.
Duration hideable_traffic(const PassPrice& pass, const FusedPairRule& rule) {
  if (rule.neighbours)
    return rounded_down(pass.of(Category::kExpertComm), rule.expert_overlap.value_or(1 / rule.slowdown));
  const Duration tensor = pass.of(Category::kTensorComm);
  return rounded_down(tensor, std::min(rule.tensor_overlap, 1 / rule.slowdown)) +
         rounded_down(pass.exchanges() - tensor, 1 / rule.slowdown);
}

// The traffic that a pass can hide without falling below least(): a pass, or a layer of it, that waits for copies
// or for its host gains nothing.
Duration hideable(const PassPrice& pass, const FusedPairRule& rule) {
  const Duration unbound = rule.neighbours ? pass.free_exchanges_of_experts() : pass.free_exchanges();
  return std::min({hideable_traffic(pass, rule), unbound, pass.total() - pass.least()});
}

}  // namespace

PairTimes fused_pair_times(const PassPrice& first, const FusedPairRule& of_first, const PassPrice& second,
                           const FusedPairRule& of_second) {
  SC_CHECK(of_first.slowdown >= 1 && of_second.slowdown >= 1, "compute is not faster beside traffic");
  if (of_first.share) {
    const Duration both = scaled(first.total() + second.total(), *of_first.share);
    const Duration part = std::min(scaled(first.total(), *of_first.share), both);
    return {.first = part, .second = both - part};
  }
  return {
      .first = first.total() - std::min(hideable(first, of_first), second.total() - second.exchanges()),
      .second = second.total() - std::min(hideable(second, of_second), first.total() - first.exchanges())};
}

Duration least_in_pair(const PassPrice& pass, const FusedPairRule& rule) {
  // The pair is rounded once, and one of its passes takes the remainder.
  if (rule.share)
    return std::max(Duration::zero(), rounded_down(pass.total(), std::min(1.0, *rule.share)) - Duration(1));
  // Two roundings cost up to a nanosecond each, because several prices may make one pass, which is rounded
  // once. The wait for the host belongs to the pass, so a single price ignores it.
  return pass.total() - std::min(hidden_in_parts(pass, rule), hideable_traffic(pass, rule) + Duration(2));
}

std::vector<TaskPart> parts_in_pair(const PassPrice& pass, Duration lasts, const FusedPairRule& rule) {
  std::vector<TaskPart> parts = pass.parts();
  if (parts.empty()) return parts;
  const Duration kept = rule.share ? Duration::zero() : pass.total() - hidden_in_parts(pass, rule);
  const Duration whole = pass.total() - kept;
  Duration rest = lasts - kept;
  const double share = whole > Duration::zero() ? to_seconds(rest) / to_seconds(whole) : 1;
  TaskPart* last = nullptr;
  for (TaskPart& part : parts) {
    if (!rule.share && !hides(static_cast<Category>(part.category), rule)) continue;
    part.time = std::min(rest, rounded_down(part.time, share));
    rest -= part.time;
    last = &part;
  }
  if (last != nullptr) last->time += rest;
  return parts;
}

}  // namespace stagecraft
