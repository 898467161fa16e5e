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

}  // namespace

ReplayPeak replay_memory(std::span<const Action> order, std::span<const PassMemory> memory) {
  SC_CHECK(!order.empty(), "a rank has passes");
  std::vector<StageInFlight> in_flight(memory.size());
  ReplayPeak peak;
  Bytes live{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto stage = static_cast<std::size_t>(order[i].stage);
    const PassMemory& pass = memory[stage];
    StageInFlight& count = in_flight[stage];
    if (order[i].pass == Pass::kForward) {
      live += pass.kept;
      ++count.whole;
    }
    const Bytes transient = transient_of(order[i].pass, pass);
    if (i == 0 || live + transient > peak.live + peak.transient)
      peak = {.live = live, .transient = transient, .action = i, .in_flight = in_flight};
    if (order[i].pass == Pass::kBackward) {
      live -= pass.kept;
      --count.whole;
    } else if (order[i].pass == Pass::kInputGradient) {
      live -= pass.freed_by_input_gradient;
      --count.whole;
      ++count.held;
    } else if (order[i].pass == Pass::kWeightGradient) {
      live -= pass.kept - pass.freed_by_input_gradient;
      --count.held;
    }
  }
  return peak;
}

}  // namespace stagecraft
