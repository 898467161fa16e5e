#include "sim/lower/memory_replay.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

void note_start(Pass pass, StageInFlight& count) {
  if (pass == Pass::kForward) ++count.whole;
  if (pass == Pass::kRecompute) ++count.again;
}

void note_end(Pass pass, bool again, StageInFlight& count) {
  if (gives_gradient(pass)) {
    --count.whole;
    count.again -= again ? 1 : 0;
  }
  if (pass == Pass::kInputGradient) ++count.held;
  if (pass == Pass::kWeightGradient) --count.held;
}

// First and last position in an order at which a stage produces weight gradients.
struct GradientSpan {
  std::optional<std::size_t> first;
  std::size_t last = 0;
};

// Spans by stage; empty where no stage has gradients that come and go.
std::vector<GradientSpan> gradient_spans(std::span<const Action> order, std::span<const PassMemory> memory) {
  const auto comes = [](const PassMemory& pass) { return pass.gradients > Bytes(0); };
  if (std::ranges::none_of(memory, comes)) return {};
  std::vector<GradientSpan> spans(memory.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!makes_weight_gradients(order[i].pass)) continue;
    GradientSpan& span = spans[static_cast<std::size_t>(order[i].stage)];
    if (!span.first) span.first = i;
    span.last = i;
  }
  return spans;
}

// Replays the memory of an order, pass after pass. A fused pair is one step.
class MemoryReplay {
 public:
  MemoryReplay(std::span<const Action> order, std::span<const PassMemory> memory,
               std::span<const GradientSpan> gradients)
      : order_(order), memory_(memory), gradients_(gradients), in_flight_(memory.size()) {}

  [[nodiscard]] bool done() const { return at_ == order_.size(); }
  [[nodiscard]] std::span<const Action> together() const {
    return order_.subspan(at_, order_[at_].fused && at_ + 1 < order_.size() ? 2 : 1);
  }
  // Allocates the memory of the next step; returns its transients.
  Bytes begin() {
    Bytes transient{};
    const std::span<const Action> starting = together();
    for (std::size_t i = 0; i < starting.size(); ++i) {
      const auto stage = static_cast<std::size_t>(starting[i].stage);
      const PassHold hold = hold_of(memory_[stage], starting[i].pass);
      live_ += hold.taken;
      transient += hold.transient;
      note_start(starting[i].pass, in_flight_[stage]);
      if (gradients_.empty() || gradients_[stage].first != at_ + i) continue;
      live_ += memory_[stage].gradients;
      in_flight_[stage].gradients = true;
    }
    return transient;
  }
  void end() {
    const std::span<const Action> ending = together();
    for (std::size_t i = 0; i < ending.size(); ++i) {
      const auto stage = static_cast<std::size_t>(ending[i].stage);
      live_ -= hold_of(memory_[stage], ending[i].pass).freed;
      note_end(ending[i].pass, memory_[stage].made_again > Bytes(0), in_flight_[stage]);
      if (!in_flight_[stage].gradients || gradients_[stage].last != at_ + i) continue;
      live_ -= memory_[stage].gradients;
      in_flight_[stage].gradients = false;
    }
    at_ += ending.size();
  }

  [[nodiscard]] Bytes live() const { return live_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::vector<StageInFlight> in_flight() && { return std::move(in_flight_); }

 private:
  std::span<const Action> order_;
  std::span<const PassMemory> memory_;
  std::span<const GradientSpan> gradients_;
  std::vector<StageInFlight> in_flight_;
  Bytes live_{};
  std::size_t at_ = 0;
};

}  // namespace

// Replays once to find the peak, and a second time up to the peak to count micro-batches: copying the counts
// at every new maximum would take longer than both replays.
ReplayPeak replay_memory(std::span<const Action> order, std::span<const PassMemory> memory) {
  SC_CHECK(!order.empty(), "a rank has passes");
  const std::vector<GradientSpan> gradients = gradient_spans(order, memory);
  ReplayPeak peak;
  for (MemoryReplay replay(order, memory, gradients); !replay.done(); replay.end()) {
    const Bytes transient = replay.begin();
    if (replay.at() > 0 && replay.live() + transient <= peak.live + peak.transient) continue;
    peak.live = replay.live();
    peak.transient = transient;
    peak.action = replay.at();
    peak.actions = replay.together().size();
  }
  MemoryReplay replay(order, memory, gradients);
  while (replay.at() < peak.action) {
    (void)replay.begin();
    replay.end();
  }
  (void)replay.begin();
  peak.in_flight = std::move(replay).in_flight();
  return peak;
}

}  // namespace stagecraft
