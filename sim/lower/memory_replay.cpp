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

// A stage of an order: of a long pipeline a rank holds few.
struct ReplayedStage {
  std::int32_t stage = 0;
  const PassMemory* memory = nullptr;
  GradientSpan gradients{};
};

std::size_t index_of(std::span<const ReplayedStage> stages, std::int32_t stage) {
  const auto at = std::ranges::lower_bound(stages, stage, {}, &ReplayedStage::stage);
  return static_cast<std::size_t>(at - stages.begin());
}

// The stages of an order, ascending.
std::vector<ReplayedStage> stages_of(std::span<const Action> order, std::span<const PassMemory> memory) {
  std::vector<ReplayedStage> stages;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int32_t stage = order[i].stage;
    const std::size_t at = index_of(stages, stage);
    if (at == stages.size() || stages[at].stage != stage)
      stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(at),
                    {.stage = stage, .memory = &memory[static_cast<std::size_t>(stage)]});
    if (!makes_weight_gradients(order[i].pass)) continue;
    GradientSpan& span = stages[at].gradients;
    if (!span.first) span.first = i;
    span.last = i;
  }
  return stages;
}

// Replays the memory of an order, pass after pass. A fused pair is one step.
class MemoryReplay {
 public:
  MemoryReplay(std::span<const Action> order, std::span<const ReplayedStage> stages)
      : order_(order), stages_(stages) {
    for (const ReplayedStage& stage : stages) in_flight_.push_back({.stage = stage.stage});
  }

  [[nodiscard]] bool done() const { return at_ == order_.size(); }
  [[nodiscard]] std::span<const Action> together() const {
    return order_.subspan(at_, order_[at_].fused && at_ + 1 < order_.size() ? 2 : 1);
  }
  // Allocates the memory of the next step; returns its transients.
  Bytes begin() {
    Bytes transient{};
    const std::span<const Action> starting = together();
    for (std::size_t i = 0; i < starting.size(); ++i) {
      const std::size_t here = index_of(stages_, starting[i].stage);
      const ReplayedStage& stage = stages_[here];
      const PassHold hold = hold_of(*stage.memory, starting[i].pass);
      live_ += hold.taken;
      transient += hold.transient;
      note_start(starting[i].pass, in_flight_[here]);
      if (stage.gradients.first != at_ + i || stage.memory->gradients == Bytes(0)) continue;
      live_ += stage.memory->gradients;
      in_flight_[here].gradients = true;
    }
    return transient;
  }
  void end() {
    const std::span<const Action> ending = together();
    for (std::size_t i = 0; i < ending.size(); ++i) {
      const std::size_t here = index_of(stages_, ending[i].stage);
      const ReplayedStage& stage = stages_[here];
      live_ -= hold_of(*stage.memory, ending[i].pass).freed;
      note_end(ending[i].pass, stage.memory->made_again > Bytes(0), in_flight_[here]);
      if (!in_flight_[here].gradients || stage.gradients.last != at_ + i) continue;
      live_ -= stage.memory->gradients;
      in_flight_[here].gradients = false;
    }
    at_ += ending.size();
  }

  [[nodiscard]] Bytes live() const { return live_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::vector<StageInFlight> in_flight() && { return std::move(in_flight_); }

 private:
  std::span<const Action> order_;
  std::span<const ReplayedStage> stages_;
  std::vector<StageInFlight> in_flight_;  // [index in stages_]
  Bytes live_{};
  std::size_t at_ = 0;
};

}  // namespace

// Replays once to find the peak, and a second time up to the peak to count micro-batches: copying the counts
// at every new maximum would take longer than both replays.
ReplayPeak replay_memory(std::span<const Action> order, std::span<const PassMemory> memory) {
  SC_CHECK(!order.empty(), "a rank has passes");
  const std::vector<ReplayedStage> stages = stages_of(order, memory);
  ReplayPeak peak;
  for (MemoryReplay replay(order, stages); !replay.done(); replay.end()) {
    const Bytes transient = replay.begin();
    if (replay.at() > 0 && replay.live() + transient <= peak.live + peak.transient) continue;
    peak.live = replay.live();
    peak.transient = transient;
    peak.action = replay.at();
    peak.actions = replay.together().size();
  }
  MemoryReplay replay(order, stages);
  while (replay.at() < peak.action) {
    (void)replay.begin();
    replay.end();
  }
  (void)replay.begin();
  peak.in_flight = std::move(replay).in_flight();
  return peak;
}

}  // namespace stagecraft
