// Details of a slice under the pointer: its tensors, the parts of its price, their provenance.
#pragma once

#include <string>

#include "calibrate/profile/provenance.hpp"
#include "sim/simulate.hpp"
#include "sim/view/pack.hpp"

namespace stagecraft {

// Colour of a slice: an index into the page's legend (sim/view/page/palette.js).
enum class Paint : std::uint8_t {
  kForward,
  kBackward,
  kWeightGradient,
  kRecompute,
  kMessage,
  kDataTraffic,
  kOtherTraffic,
  kOptimizer,
  kOther,
  kBubble,
  kExposed,
};

[[nodiscard]] Paint paint_of(const PackedLabel& label, const Program& program);

// "layers 12–17 of 96", with embedding and head; empty of a task that is no pass.
[[nodiscard]] std::string stage_text(const Label& label, const Scenario& scenario, const ParallelPlan& plan);
// "s × b × h = 2048 × 1 × 12288, bf16"; empty where the scenario has no tensors.
[[nodiscard]] std::string shape_text(const Label& label, const Scenario& scenario, const ParallelPlan& plan);
// Shares of its price by Provenance; all 0 where nothing is known of it.
[[nodiscard]] ByProvenance provenance_of(const Label& label, const IterationPrices& prices,
                                         const ParallelPlan& plan);

}  // namespace stagecraft
