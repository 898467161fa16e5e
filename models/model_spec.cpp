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

}  // namespace stagecraft
