// Prices of a made-up pipeline in whole seconds, so that every expectation can be checked with a pencil.
#pragma once

#include <cstdint>

#include "sim/lower/lower.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct UniformCosts {
  std::int64_t forward = 1, input_gradient = 1, weight_gradient = 1, message = 0;  // in `unit`
  Duration unit = std::chrono::seconds(1);
};

inline IterationPrices uniform_prices(const PipelineShape& shape, const UniformCosts& costs) {
  StagePrice stage;
  stage.forward.add(Category::kForward, costs.forward * costs.unit, Provenance::kAssumed);
  stage.input_gradient.add(Category::kBackward, costs.input_gradient * costs.unit, Provenance::kAssumed);
  stage.weight_gradient.add(Category::kBackward, costs.weight_gradient * costs.unit, Provenance::kAssumed);
  EdgePrice edge;
  if (shape.ranks > 1) {
    edge.forward.add(Category::kPipelineComm, costs.message * costs.unit, Provenance::kAssumed);
    edge.backward.add(Category::kPipelineComm, costs.message * costs.unit, Provenance::kAssumed);
  }
  const auto stages = static_cast<std::size_t>(shape.ranks) * static_cast<std::size_t>(shape.chunks);
  IterationPrices prices;
  prices.stages.assign(stages, stage);
  prices.edges.assign(stages, edge);
  prices.ranks.resize(static_cast<std::size_t>(shape.ranks));
  prices.second_embedding = shape.ranks * shape.chunks - 1;  // the last stage's, where one is given a price
  return prices;
}

inline Schedule schedule_of(const char* name, const PipelineShape& shape) {
  return generate(*find_schedule(name), shape);
}

// The same on devices that traffic beside a pass slows by this factor.
inline IterationPrices slowed(IterationPrices prices, double factor) {
  for (StagePrice& stage : prices.stages) stage.beside.slowdown = factor;
  return prices;
}

inline PassPrice seconds(Category category, std::int64_t count) {
  PassPrice price;
  price.add(category, std::chrono::seconds(count), Provenance::kAssumed);
  return price;
}

}  // namespace stagecraft
