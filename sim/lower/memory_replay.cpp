#include "sim/lower/memory_replay.hpp"

#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

Bytes transient_of(Pass pass, const PassMemory& memory) {
  switch (pass) {
    case Pass::kForward:
      return memory.forward_transient;
    case Pass::kBackward:
    case Pass::kInputGradient:
      return memory.backward_transient;
    case Pass::kWeightGradient:
    case Pass::kRecompute:
      break;
  }
  return Bytes(0);
}

void take(const Action& action, const PassMemory& pass, StageInFlight& count, Bytes& live) {
  if (action.pass == Pass::kForward) {
    live += pass.kept;
    ++count.whole;
  } else if (action.pass == Pass::kRecompute) {
    live += pass.made_again;
    ++count.again;
  }
}

void release(const Action& action, const PassMemory& pass, StageInFlight& count, Bytes& live) {
  const bool again = pass.made_again > Bytes(0);
  if (action.pass == Pass::kBackward) {
    live -= pass.kept + pass.made_again;
    --count.whole;
    count.again -= again ? 1 : 0;
  } else if (action.pass == Pass::kInputGradient) {
    live -= pass.freed_by_input_gradient;
    --count.whole;
    count.again -= again ? 1 : 0;
    ++count.held;
  } else if (action.pass == Pass::kWeightGradient) {
    live -= pass.kept + pass.made_again - pass.freed_by_input_gradient;
    --count.held;
  }
}

// What the passes of an order hold, one after another; those of a fused pair are one step.
class MemoryReplay {
 public:
  MemoryReplay(std::span<const Action> order, std::span<const PassMemory> memory)
      : order_(order), memory_(memory), in_flight_(memory.size()) {}

  [[nodiscard]] bool done() const { return at_ == order_.size(); }
  [[nodiscard]] std::span<const Action> together() const {
    return order_.subspan(at_, order_[at_].fused && at_ + 1 < order_.size() ? 2 : 1);
  }
  // Takes what the next step holds; returns its transients.
  Bytes begin() {
    Bytes transient{};
    for (const Action& action : together()) {
      const auto stage = static_cast<std::size_t>(action.stage);
      take(action, memory_[stage], in_flight_[stage], live_);
      transient += transient_of(action.pass, memory_[stage]);
    }
    return transient;
  }
  void end() {
    const std::span<const Action> ending = together();
    for (const Action& action : ending) {
      const auto stage = static_cast<std::size_t>(action.stage);
      release(action, memory_[stage], in_flight_[stage], live_);
    }
    at_ += ending.size();
  }

  [[nodiscard]] Bytes live() const { return live_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::vector<StageInFlight> in_flight() && { return std::move(in_flight_); }

 private:
  std::span<const Action> order_;
  std::span<const PassMemory> memory_;
  std::vector<StageInFlight> in_flight_;
  Bytes live_{};
  std::size_t at_ = 0;
};

}  // namespace

// Once to find the worst moment, and once more up to it to count: copying the counts at every new maximum
// would take longer than both.
ReplayPeak replay_memory(std::span<const Action> order, std::span<const PassMemory> memory) {
  SC_CHECK(!order.empty(), "a rank has passes");
  ReplayPeak peak;
  for (MemoryReplay replay(order, memory); !replay.done(); replay.end()) {
    const Bytes transient = replay.begin();
    if (replay.at() > 0 && replay.live() + transient <= peak.live + peak.transient) continue;
    peak.live = replay.live();
    peak.transient = transient;
    peak.action = replay.at();
    peak.actions = replay.together().size();
  }
  MemoryReplay replay(order, memory);
  while (replay.at() < peak.action) {
    (void)replay.begin();
    replay.end();
  }
  (void)replay.begin();
  peak.in_flight = std::move(replay).in_flight();
  return peak;
}

}  // namespace stagecraft
