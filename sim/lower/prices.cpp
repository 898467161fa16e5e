#include "sim/lower/prices.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace stagecraft {

void PassPrice::add(Category category, Duration time, Provenance provenance) {
  SC_CHECK(time >= Duration::zero(), "a price is not negative");
  by_category_[static_cast<std::size_t>(category)] += time;
  by_provenance_[static_cast<std::size_t>(provenance)] += to_seconds(time);
}

void PassPrice::add(const PassPrice& other, std::int64_t times) {
  for (std::size_t i = 0; i < by_category_.size(); ++i) by_category_[i] += other.by_category_[i] * times;
  for (std::size_t i = 0; i < by_provenance_.size(); ++i) {
    by_provenance_[i] += other.by_provenance_[i] * static_cast<double>(times);
  }
  least_ += other.least_ * times;
  bound_ += other.bound_ * times;
  bound_of_experts_ += other.bound_of_experts_ * times;
  for (std::int64_t i = 0; i < times; ++i)
    network_.insert(network_.end(), other.network_.begin(), other.network_.end());
}

void PassPrice::add(const NetworkUse& use, Provenance provenance) {
  add(use.category, use.time, provenance);
  network_.push_back(use);
}

void PassPrice::restate(Duration part, Provenance from, Provenance to) {
  if (from == to) return;
  by_provenance_[static_cast<std::size_t>(from)] -= to_seconds(part);
  by_provenance_[static_cast<std::size_t>(to)] += to_seconds(part);
}

Duration PassPrice::hide(Category category, Duration most) {
  Duration& time = by_category_[static_cast<std::size_t>(category)];
  const Duration hidden = std::min(time, most);
  const double before = to_seconds(total());
  time -= hidden;
  // Hidden time is not spent: every provenance loses in proportion.
  if (before > 0) {
    for (double& seconds : by_provenance_) seconds *= to_seconds(total()) / before;
  }
  return hidden;
}

void PassPrice::keep_at_least(Duration least) {
  least_ = std::max(least_, least);
}

Duration PassPrice::exchanges() const {
  Duration sum{};
  for (const Category category : kInPass) sum += of(category);
  return sum;
}

Duration PassPrice::free_exchanges() const {
  return std::max(Duration::zero(), exchanges() - bound_);
}

Duration PassPrice::free_exchanges_of_experts() const {
  return std::max(Duration::zero(), of(Category::kExpertComm) - bound_of_experts_);
}

Duration PassPrice::total() const {
  return std::accumulate(by_category_.begin(), by_category_.end(), Duration::zero());
}

std::vector<TaskPart> PassPrice::parts() const {
  std::vector<TaskPart> parts;
  for (std::size_t i = 0; i < by_category_.size(); ++i) {
    if (by_category_[i] != Duration::zero()) {
      parts.push_back({.category = static_cast<std::int32_t>(i), .time = by_category_[i]});
    }
  }
  return parts;
}

Duration StagePrice::backward() const {
  return recompute.total() + input_gradient.total() + weight_gradient.total();
}

PassParts parts_of(const StagePrice& stage, Pass pass, bool recomputes) {
  PassParts parts;
  for_each_part(stage, pass, recomputes, [&](const PassPrice& part) { parts.push_back(part); });
  if (pass == Pass::kInputGradient) parts.push_back(stage.unhidden);
  return parts;
}

PassPrice pass_price(const StagePrice& stage, Pass pass, bool recomputes) {
  PassPrice price;
  for (const PassPrice* part : parts_of(stage, pass, recomputes)) price.add(*part);
  return price;
}

PassExchanges exchanges_of(const PassTraffic& stage, Pass pass, bool recomputes) {
  PassExchanges sum;
  for_each_part(stage, pass, recomputes, [&](const PassExchanges& part) { add(sum, part); });
  return sum;
}

OverlapCosts overlap_costs(const HardwareProfile& profile) {
  const double slowdown = profile.gradient_overlap_slowdown.value;
  return {.slowdown = slowdown, .pair_slowdown = slowdown, .tensor_overlap = profile.tensor_overlap.value};
}

PassHold hold_of(const PassMemory& memory, Pass pass) {
  const Bytes made = memory.kept + memory.made_again;
  switch (pass) {
    case Pass::kForward:
      return {.taken = memory.kept, .transient = memory.forward_transient, .freed = {}};
    case Pass::kBackward:
      return {.taken = {}, .transient = memory.backward_transient, .freed = made};
    case Pass::kInputGradient:
      return {
          .taken = {}, .transient = memory.input_gradient_transient, .freed = memory.freed_by_input_gradient};
    case Pass::kWeightGradient:
      return {.taken = {},
              .transient = memory.weight_gradient_transient,
              .freed = made - memory.freed_by_input_gradient};
    case Pass::kRecompute:
      return {.taken = memory.made_again, .transient = {}, .freed = {}};
  }
  return {};
}

}  // namespace stagecraft
