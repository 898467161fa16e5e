#include "sim/lower/memory_replay.hpp"

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

}  // namespace

ReplayPeak replay_memory(std::span<const Action> order, std::span<const PassMemory> memory) {
  SC_CHECK(!order.empty(), "a rank has passes");
  std::vector<StageInFlight> in_flight(memory.size());
  ReplayPeak peak;
  Bytes live{};
  for (std::size_t i = 0; i < order.size();) {
    const std::size_t count = order[i].fused && i + 1 < order.size() ? 2 : 1;
    const std::span<const Action> together = order.subspan(i, count);
    Bytes transient{};
    for (const Action& action : together) {
      const auto stage = static_cast<std::size_t>(action.stage);
      take(action, memory[stage], in_flight[stage], live);
      transient += transient_of(action.pass, memory[stage]);
    }
    if (i == 0 || live + transient > peak.live + peak.transient)
      peak = {.live = live, .transient = transient, .action = i, .actions = count, .in_flight = in_flight};
    for (const Action& action : together) {
      const auto stage = static_cast<std::size_t>(action.stage);
      release(action, memory[stage], in_flight[stage], live);
    }
    i += count;
  }
  return peak;
}

}  // namespace stagecraft
