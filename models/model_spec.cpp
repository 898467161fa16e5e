#include "models/model_spec.hpp"

#include <algorithm>
#include <span>

#include "base/check.hpp"

namespace stagecraft {

namespace {

// Those of an ascending list that lie in [first, end).
std::span<const std::int64_t> listed_between(const std::vector<std::int64_t>& layers, std::int64_t first,
                                             std::int64_t end) {
  const auto from = std::ranges::lower_bound(layers, first);
  return {from, std::lower_bound(from, layers.end(), end)};
}

std::int64_t in_both(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  std::int64_t both = 0;
  for (const std::int64_t layer : a) both += std::ranges::binary_search(b, layer) ? 1 : 0;
  return both;
}

}  // namespace

std::int64_t& LayerNumbers::operator[](LayerKind kind) {
  switch (kind) {
    case LayerKind::kDense:
      return dense;
    case LayerKind::kExperts:
      return experts;
    case LayerKind::kDenseInWindow:
      return dense_in_window;
    case LayerKind::kExpertsInWindow:
      break;
  }
  return experts_in_window;
}

std::int64_t LayerNumbers::operator[](LayerKind kind) const {
  LayerNumbers copy = *this;
  return copy[kind];
}

LayerNumbers& LayerNumbers::operator+=(const LayerNumbers& other) {
  for (const LayerKind kind : kLayerKinds) (*this)[kind] += other[kind];
  return *this;
}

LayerKind TransformerSpec::kind_of(std::int64_t layer) const {
  SC_CHECK(layer >= 0 && layer < layers, "a layer of the model");
  const LayerNumbers one = layers_between(layer, layer + 1);
  return *std::ranges::find_if(kLayerKinds, [&](LayerKind kind) { return one[kind] == 1; });
}

LayerNumbers TransformerSpec::layers_between(std::int64_t first, std::int64_t end) const {
  const std::int64_t all = end - first;
  if (!experts && !sliding_window) return {.dense = all};
  const auto count = [](std::span<const std::int64_t> some) {
    return static_cast<std::int64_t>(some.size());
  };
  const auto dense =
      experts ? listed_between(experts->dense_layers, first, end) : std::span<const std::int64_t>{};
  const std::int64_t without = experts ? count(dense) : all;
  if (!sliding_window) return {.dense = without, .experts = all - without};
  const auto full = listed_between(sliding_window->full_layers, first, end);
  const std::int64_t dense_full = experts ? in_both(full, dense) : count(full);
  const std::int64_t experts_full = count(full) - dense_full;
  return {.dense = dense_full,
          .experts = experts_full,
          .dense_in_window = without - dense_full,
          .experts_in_window = all - without - experts_full};
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
