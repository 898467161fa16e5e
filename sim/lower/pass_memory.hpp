// What the passes of one stage hold on the GPU, per micro-batch: the tensors of models/memory.hpp, summed
// over the layers, ends and checkpoints of the stage.
//
//   none, selective   every layer's saved tensors
//   full              the input of each checkpointed group of layers; one group's tensors while it is made
//                     again; layers beyond the recomputed ones keep all of theirs
//   full, by a pass   the input of the stage (the first stage's, token ids, is not counted); all of the
//   of its own        layers' tensors from that pass (R) on
//
// The forward adds `kept` at its start. A whole backward frees it at its end. Of a split backward, the end of
// I frees `kept` less what the weight gradients wait for: products' inputs and the gradients of their
// outputs. Under full recompute that is more than was kept, so the end of I takes memory.
#pragma once

#include <cstdint>
#include <vector>

#include "models/memory.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/plan/specs.hpp"

namespace stagecraft {

// What the passes do with what they keep.
struct PassHabits {
  std::int64_t checkpoint_group = 1;  // layers that full recompute expands at once
  double offloaded = 0;               // share of the kept tensors that lives in host memory
  bool recomputed_mtp = false;        // layers of multi-token prediction are repeated too
};
// A share of a size, to the nearest byte.
[[nodiscard]] Bytes share_of(Bytes size, double share);
// Layers that keep alike.
struct KeptLayers {
  std::int64_t count = 0;
  Bytes each;
};
// What the buffers of offloaded activations hold: the layer that computes and the one that is on its way to the
// host or back, the largest two as far as there are two.
[[nodiscard]] Bytes on_their_way(const std::vector<KeptLayers>& layers);
// A group of `uniform` recompute has `layers` layers, one of `block` a single one.
[[nodiscard]] PassHabits pass_habits(const RecomputeSpec& recompute, const OffloadSpec& offload);

// Largest first within a kind of tensor; alike tensors of all layers are one entry.
struct StageTensors {
  SavedTensors kept;
  SavedTensors forward_transient;   // what is live beside it at the worst moment of the forward
  SavedTensors backward_transient;  // and of the backward
  Bytes held_for_weight_gradients;  // of a split backward, between I and W
  SavedTensors made_again{};        // by a recompute pass
};
[[nodiscard]] StageTensors stage_tensors(const TransformerSpec& model, const Shard& shard,
                                         const StageContent& content, const PassHabits& habits = {});

// The totals of these tensors.
[[nodiscard]] PassMemory pass_memory(const StageTensors& stage);
[[nodiscard]] PassMemory pass_memory(const TransformerSpec& model, const Shard& shard,
                                     const StageContent& content, const PassHabits& habits = {});

}  // namespace stagecraft
