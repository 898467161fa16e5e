// GPU memory that the passes of one stage hold per micro-batch: the tensors of models/memory.hpp, summed over
// the layers, ends and checkpoints of the stage.
//
//   none, selective   every layer's saved tensors
//   full              the input of each checkpointed group of layers; one group's tensors while it is made
//                     again; layers beyond the recomputed ones keep all of theirs
//   full, by a pass   the input of the stage (the first stage's, token ids, is not counted); all of the
//   of its own        layers' tensors from that pass (R) on
//
// The forward adds `kept` at its start, and an unsplit backward frees it at its end. In a split backward, the
// end of I frees `kept` except the tensors that the weight gradients need: the inputs of the GEMMs and the
// gradients of their outputs. Under full recompute these are larger than `kept`, so I allocates memory from
// layer to layer, and its peak may be in the layer that runs last.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/memory.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/plan/specs.hpp"

namespace stagecraft {

// Gradients that a backward makes and leaves behind, in bytes a parameter of the rank. None where they are there all
// the time.
struct FreshGradients {
  double dense = 0, experts = 0;
};
// Treatment of the kept tensors: checkpoint groups, offload.
struct PassHabits {
  std::int64_t checkpoint_group = 1;  // layers that full recompute expands at once
  double offloaded = 0;               // share of the layers' kept tensors that lives in host memory
  FreshGradients gradients = {};
};
// A share of a size, to the nearest byte.
[[nodiscard]] Bytes share_of(Bytes size, double share);
// Layers that keep the same number of bytes.
struct KeptLayers {
  std::int64_t count = 0;
  Bytes each;
};
// Staging buffers of offloaded activations: the layer that computes and the layer in transit, taken as the
// two largest.
[[nodiscard]] Bytes on_their_way(const std::vector<KeptLayers>& layers);
// `uniform` recompute checkpoints groups of `layers` layers, `block` recompute single layers.
[[nodiscard]] PassHabits pass_habits(const RecomputeSpec& recompute, const OffloadSpec& offload);

// Transient tensors that count as activations.
inline constexpr std::string_view kRecomputedLayer = "recomputed layer";
inline constexpr std::string_view kHeldForWeightGradients = "held for weight gradients";
// And one that counts as gradients: those that a backward has made, beyond the activations that it has freed.
inline constexpr std::string_view kGradientsMade = "gradients made by the backward";

// Tensors of a stage, one entry per name over all layers.
struct StageTensors {
  SavedTensors kept;
  // Further live tensors at the peak of the forward, of the backward, and of each half of a split one. I
  // includes what the layers that have run hold for W.
  SavedTensors forward_transient, backward_transient, input_gradient_transient, weight_gradient_transient;
  Bytes held_for_weight_gradients;  // held between I and W of a split backward
  SavedTensors made_again{};        // recomputed by a recompute pass

  // While a pass runs; a recompute pass has none.
  [[nodiscard]] std::span<const SavedTensor> transient(Pass pass) const;
};
[[nodiscard]] StageTensors stage_tensors(const TransformerSpec& model, const Shard& shard,
                                         const StageContent& content, const PassHabits& habits = {});

// What a stage keeps of a micro-batch that can be offloaded: the tensors of its layers and predictions. The
// ends stay: the passes that keep them are the next to read them, or they are small.
[[nodiscard]] Bytes offloadable(const TransformerSpec& model, const Shard& shard, const StageContent& content,
                                const RecomputeSpec& recompute);

// The gradient of the word embedding in the precision of the weights; tensor ranks may hold all of it.
[[nodiscard]] Bytes embedding_gradient(const TransformerSpec& model, const Shard& shard);

// The totals of these tensors.
[[nodiscard]] PassMemory pass_memory(const StageTensors& stage);
[[nodiscard]] PassMemory pass_memory(const TransformerSpec& model, const Shard& shard,
                                     const StageContent& content, const PassHabits& habits = {});
// Of an abstract stage. The scenario does not give the size of the inputs that a recomputed one keeps.
[[nodiscard]] PassMemory pass_memory(const StagesSpec& model, const StageContent& content, std::size_t stage);

}  // namespace stagecraft
