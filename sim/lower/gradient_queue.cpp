#include "sim/lower/gradient_queue.hpp"

#include <algorithm>

#include "models/memory.hpp"

namespace stagecraft {
namespace {

bool is_layer(const StageUnit& unit) {
  return unit.kind == UnitKind::kLayer || unit.kind == UnitKind::kMtp;
}

LayerKind kind_of(const TransformerSpec& model, const StageUnit& unit) {
  return unit.kind == UnitKind::kMtp ? model.mtp_kind() : unit.layer;
}

// Tensors that a unit keeps from its forward to its backward.
Bytes kept(const TransformerSpec& model, const Shard& shard, const StageUnit& unit) {
  if (!is_layer(unit)) return Bytes(0);
  if (unit.recomputed) return boundary_activation(model, shard);
  return total(layer_tensors(model, shard.of_layers(false), kind_of(model, unit)));
}

// Further tensors that its backward holds.
Bytes working(const TransformerSpec& model, const Shard& shard, const StageUnit& unit) {
  if (unit.kind == UnitKind::kHead)
    return head_activation(model, shard) + head_transient(model, shard).backward;
  if (!is_layer(unit)) return Bytes(0);
  const Shard plain = shard.of_layers(false);
  const LayerTransient layer = layer_transient(model, plain, kind_of(model, unit));
  const Bytes again =
      unit.recomputed ? total(layer_tensors(model, plain, kind_of(model, unit))) - kept(model, shard, unit)
                      : layer.recomputed;
  return layer.backward + again;
}

}  // namespace

std::int64_t queue_capacity(std::span<const StageUnit> units, const Shard& shard, int zero_stage) {
  const std::int64_t least = shard.software.communication_unit;
  if (least == 0 || zero_stage < 3) return least;
  std::int64_t layers = 0, parameters = 0;
  for (const StageUnit& unit : units) {
    if (!is_layer(unit)) continue;
    ++layers;
    parameters += unit.gathered.all();
  }
  return std::max(least, layers == 0 ? 0 : parameters / layers * 2);
}

Bytes queued_gradients(const TransformerSpec& model, const Shard& shard, std::span<const StageUnit> units,
                       std::int64_t capacity) {
  const std::int64_t bytes = state_bytes(shard).gradient;
  Bytes most{}, gone{};
  std::int64_t waiting = 0;
  std::size_t oldest = units.size();
  for (std::size_t i = units.size(); i-- > 0;) {
    const std::int64_t size = units[i].gathered.all();
    most = std::max(most, Bytes((waiting + size) * bytes) - gone);
    while (waiting > capacity) waiting -= units[--oldest].gathered.all();
    waiting += size;
    gone += kept(model, shard, units[i]);
    if (units[i].kind == UnitKind::kHead && i > 0)
      gone += std::max(working(model, shard, units[i]) - working(model, shard, units[i - 1]), Bytes(0));
  }
  return most;
}

}  // namespace stagecraft
