#include "sim/lower/gradient_queue.hpp"

#include <algorithm>

#include "models/memory.hpp"
#include "sim/lower/pass_memory.hpp"

namespace stagecraft {
namespace {

bool is_layer(const StageUnit& unit) {
  return unit.kind == UnitKind::kLayer || unit.kind == UnitKind::kMtp;
}

LayerKind kind_of(const TransformerSpec& model, const StageUnit& unit) {
  return unit.kind == UnitKind::kMtp ? model.mtp_kind() : unit.layer;
}

// What a unit's backward, or its weight-gradient half, frees at its end, and what it needs while it runs.
// Beside the queue no other 16-bit gradients of weights are made, but for the dense one of the embedding.
struct UnitMemory {
  Bytes kept, working;
};

UnitMemory of_backward(const TransformerSpec& model, const Shard& shard, const StageUnit& unit,
                       double on_gpu) {
  if (unit.kind == UnitKind::kHead)
    return {.kept = head_activation(model, shard), .working = head_transient(model, shard).backward};
  if (!is_layer(unit)) return {.kept = {}, .working = embedding_gradient(model, shard)};
  const Shard plain = shard.of_layers(false);
  const LayerTransient layer = layer_transient(model, plain, kind_of(model, unit));
  const Bytes whole = total(layer_tensors(model, plain, kind_of(model, unit)));
  const Bytes kept = share_of(unit.recomputed ? boundary_activation(model, shard) : whole, on_gpu);
  return {.kept = kept, .working = layer.backward + (unit.recomputed ? whole - kept : layer.recomputed)};
}

UnitMemory of_weight_gradient(const TransformerSpec& model, const Shard& shard, const StageUnit& unit) {
  const Bytes row = boundary_activation(model, shard);
  if (unit.kind == UnitKind::kHead) return {.kept = held_by_head(model, shard), .working = {}};
  if (!is_layer(unit)) return {.kept = row, .working = embedding_gradient(model, shard)};
  return {.kept = held_for_weight_gradients(model, shard.of_layers(false), kind_of(model, unit)),
          .working = {}};
}

}  // namespace

std::int64_t queue_capacity(std::span<const StageUnit> units, const Shard& shard, int zero_stage) {
  const std::int64_t least = shard.rules.communication_unit;
  if (least == 0 || zero_stage < 3) return least;
  std::int64_t layers = 0, parameters = 0;
  for (const StageUnit& unit : units) {
    if (!is_layer(unit)) continue;
    ++layers;
    parameters += unit.gathered.all();
  }
  return std::max(least, layers == 0 ? 0 : parameters / layers * 2);
}

QueuedGradients queued_gradients(const TransformerSpec& model, const Shard& shard,
                                 std::span<const StageUnit> units, std::int64_t capacity, double offloaded) {
  const std::int64_t bytes = state_bytes(shard).gradient;
  const auto added = [&](const auto& memory_of) {
    Bytes with{}, without{}, gone{};
    std::int64_t waiting = 0;
    std::size_t oldest = units.size();
    for (std::size_t i = units.size(); i-- > 0;) {
      const std::int64_t size = units[i].gathered.all();
      const UnitMemory unit = memory_of(units[i]);
      without = std::max(without, unit.working - gone);
      with = std::max(with, unit.working - gone + Bytes((waiting + size) * bytes));
      while (waiting > capacity) waiting -= units[--oldest].gathered.all();
      waiting += size;
      gone += unit.kept;
    }
    return with - without;
  };
  return {.backward =
              added([&](const StageUnit& unit) { return of_backward(model, shard, unit, 1 - offloaded); }),
          .weight_gradient =
              added([&](const StageUnit& unit) { return of_weight_gradient(model, shard, unit); })};
}

}  // namespace stagecraft
