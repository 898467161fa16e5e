#include "models/model_spec.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {

LayerKind TransformerSpec::kind_of(std::int64_t layer) const {
  SC_CHECK(layer >= 0 && layer < layers, "a layer of the model");
  if (!experts) return LayerKind::kDense;
  return std::ranges::binary_search(experts->dense_layers, layer) ? LayerKind::kDense : LayerKind::kExperts;
}

std::int64_t TransformerSpec::layers_of(LayerKind kind) const {
  const std::int64_t dense = experts ? static_cast<std::int64_t>(experts->dense_layers.size()) : layers;
  return kind == LayerKind::kDense ? dense : layers - dense;
}

StagesSpec in_parts(StagesSpec stages, int parts) {
  if (parts == 1) return stages;
  if (stages.message.empty()) stages.message = stages.activation;
  for (auto* costs : {&stages.forward, &stages.input_gradient, &stages.weight_gradient, &stages.recompute})
    if (costs->size() == 1) costs->front() = scaled(costs->front(), 1.0 / parts);
  for (auto* sizes : {&stages.activation, &stages.gradient})
    if (sizes->size() == 1) sizes->front() = Bytes((sizes->front().count() + parts - 1) / parts);
  return stages;
}

}  // namespace stagecraft
