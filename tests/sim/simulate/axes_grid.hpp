// A grid over the axes that memory and traffic depend on: context (three exchanges), experts and their tensor
// split, ZeRO 0 to 3 and hybrid sharding, sequence parallelism, recompute, offload; of a dense model, one
// with experts, and one with latent attention, experts and multi-token prediction.
//
// Degrees are walked in full; what goes with them is drawn by a fixed rule, so that every value meets every
// axis.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Calls `visit` with each scenario and its name. 1 to 64 A100, 8 layers, 2,048 tokens, 8 micro-batches.
void for_each_in_axes(const std::function<void(const std::string& name, const Scenario& scenario)>& visit);

// Every way to recompute that `scenario` may use, `none` left out; from little to much within a kind.
[[nodiscard]] std::vector<RecomputeSpec> ways_to_recompute(const Scenario& scenario);

}  // namespace stagecraft
