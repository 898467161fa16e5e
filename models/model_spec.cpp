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

struct LayerRange {
  std::int64_t first = 0, end = 0;
};

// The layers of a range in which products have one precision.
void add_layers(LayerNumbers& numbers, const TransformerSpec& model, LayerRange range, bool sixteen_bit) {
  const std::int64_t all = range.end - range.first;
  if (all == 0) return;
  if (!model.experts && !model.sliding_window) {
    numbers[layer_kind(false, false, sixteen_bit)] += all;
    return;
  }
  const auto listed = [&](const std::vector<std::int64_t>& layers) {
    return listed_between(layers, range.first, range.end);
  };
  const auto count = [](std::span<const std::int64_t> some) {
    return static_cast<std::int64_t>(some.size());
  };
  const auto dense = model.experts ? listed(model.experts->dense_layers) : std::span<const std::int64_t>{};
  const std::int64_t without = model.experts ? count(dense) : all;
  std::int64_t whole = all, dense_whole = without;  // that attend to all tokens
  if (model.sliding_window) {
    const auto full = listed(model.sliding_window->full_layers);
    whole = count(full);
    dense_whole = model.experts ? in_both(full, dense) : whole;
  }
  numbers[layer_kind(false, false, sixteen_bit)] += dense_whole;
  numbers[layer_kind(true, false, sixteen_bit)] += whole - dense_whole;
  numbers[layer_kind(false, true, sixteen_bit)] += without - dense_whole;
  numbers[layer_kind(true, true, sixteen_bit)] += all - without - (whole - dense_whole);
}

}  // namespace

LayerNumbers& LayerNumbers::operator+=(const LayerNumbers& other) {
  for (const LayerKind kind : kLayerKinds) (*this)[kind] += other[kind];
  return *this;
}

LayerKind TransformerSpec::kind_of(std::int64_t layer) const {
  SC_CHECK(layer >= 0 && layer < layers, "a layer of the model");
  const auto lists = [&](const std::vector<std::int64_t>& some) {
    return std::ranges::binary_search(some, layer);
  };
  return layer_kind(experts && !lists(experts->dense_layers),
                    sliding_window && !lists(sliding_window->full_layers),
                    layer < sixteen_bit.first || layer >= layers - sixteen_bit.last);
}

LayerNumbers TransformerSpec::layers_between(std::int64_t first, std::int64_t end) const {
  LayerNumbers numbers;
  if (sixteen_bit == SixteenBitLayers{}) {
    add_layers(numbers, *this, {first, end}, false);
    return numbers;
  }
  const std::int64_t from = std::clamp(sixteen_bit.first, first, end);
  const std::int64_t to = std::clamp(layers - sixteen_bit.last, from, end);
  add_layers(numbers, *this, {first, from}, true);
  add_layers(numbers, *this, {from, to}, false);
  add_layers(numbers, *this, {to, end}, true);
  return numbers;
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
