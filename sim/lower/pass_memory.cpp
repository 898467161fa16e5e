#include "sim/lower/pass_memory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ceil_div.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {
namespace {

// Adds `tensors` to `sum`, one entry per name.
void add(SavedTensors& sum, const SavedTensors& tensors, std::int64_t times) {
  if (times == 0) return;
  for (const SavedTensor& tensor : tensors) {
    auto known =
        std::find_if(sum.begin(), sum.end(), [&](const SavedTensor& t) { return t.name == tensor.name; });
    if (known == sum.end()) known = sum.insert(sum.end(), {tensor.name, Bytes(0)});
    known->size += tensor.size * times;
  }
}

SavedTensors nonzero(std::initializer_list<SavedTensor> tensors) {
  SavedTensors kept;
  for (const SavedTensor& tensor : tensors)
    if (tensor.size > Bytes(0)) kept.push_back(tensor);
  return kept;
}

// Layers of one kind in a stage: fully recomputed, and not.
struct LayerCount {
  LayerKind kind;
  std::int64_t plain, recomputed;
  bool prediction = false;   // layers of multi-token prediction
  Bytes whole{}, held{};     // of one: its tensors, and what it holds for its weight gradients
  LayerTransient running{};  // of one
  Bytes gradients{};         // that the backward of one leaves behind (PassHabits::gradients)
};

void larger(SavedTensors& most, SavedTensors other) {
  if (total(other) > total(most)) most = std::move(other);
}

// A backward as one pass, or the input gradients of a split one.
enum class Half : std::uint8_t { kBoth, kInput };

class StageSum {
 public:
  StageSum(const TransformerSpec& model, const Shard& shard, const StageContent& content,
           const PassHabits& habits)
      : model_(model), shard_(shard), plain_(shard.of_layers(false)), content_(content), habits_(habits) {
    // A recompute pass restores all tensors, as if nothing was recomputed.
    const LayerNumbers layers = content.layers.by_memory();
    const LayerNumbers repeated = content.recompute_pass ? LayerNumbers{} : content.recomputed.by_memory();
    for (const LayerKind kind : kLayerKinds) {
      if (layers[kind] == 0) continue;
      counts_.push_back({.kind = kind, .plain = layers[kind] - repeated[kind], .recomputed = repeated[kind]});
    }
    if (content.mtp_layers > 0) {
      const bool again = content.recomputed_mtp;
      counts_.push_back({.kind = model.mtp_kind(),
                         .plain = again ? 0 : content.mtp_layers,
                         .recomputed = again ? content.mtp_layers : 0,
                         .prediction = true});
    }
    for (LayerCount& count : counts_) {
      count.whole = total(layer_tensors(model, plain_, count.kind));
      count.held = held_for_weight_gradients(model, plain_, count.kind);
      count.running = layer_transient(model, plain_, count.kind);
      count.gradients = gradients_of(count);
    }
  }

  StageTensors tensors() const {
    StageTensors stage{.kept = content_.recompute_pass ? on_gpu(input()) : kept(on_gpu(of_layers())),
                       .forward_transient = {},
                       .backward_transient = {},
                       .input_gradient_transient = {},
                       .weight_gradient_transient = {},
                       .held_for_weight_gradients = held()};
    if (content_.recompute_pass) {
      stage.made_again = kept(of_layers());
      take_away(stage.made_again, input_among_tensors(model_, plain_), total(stage.kept));
    }
    for (const LayerCount& count : counts_) {
      larger(stage.forward_transient, layer_forward(count));
      larger(stage.backward_transient, layer_backward(count, Half::kBoth));
      larger(stage.input_gradient_transient, layer_backward(count, Half::kInput));
    }
    if (content_.head) {
      larger(stage.forward_transient, head_forward());
      larger(stage.backward_transient, head_backward(Half::kBoth));
      larger(stage.input_gradient_transient, head_backward(Half::kInput));
    }
    if (content_.embedding)
      larger(stage.backward_transient, embedding_backward(total(stage.kept) + total(stage.made_again)));
    else if (content_.mtp_layers > 0)
      larger(stage.backward_transient, embedding_backward(gone_behind_mtp()));
    stage.weight_gradient_transient = weight_gradients();
    return stage;
  }

  Bytes offloadable() const { return total(content_.recompute_pass ? input() : of_layers()); }

 private:
  // Kept by the layers and predictions of the stage, on the GPU or on the host.
  SavedTensors of_layers() const {
    SavedTensors kept;
    std::int64_t checkpoints = 0;
    for (const LayerCount& count : counts_) {
      add(kept, layer_tensors(model_, plain_, count.kind), count.plain);
      checkpoints += count.recomputed;
    }
    const Bytes row = boundary_activation(model_, shard_);
    if (checkpoints > 0) {
      const std::int64_t groups = ceil_div(checkpoints, habits_.checkpoint_group);
      // The first checkpoint lies in the receive buffer of the micro-batch.
      const std::int64_t received = shard_.rules.step_messages && !content_.embedding ? 1 : 0;
      add(kept, {{.name = "checkpoints", .size = row}}, groups - received);
    }
    add(kept, prediction_tensors(), content_.mtp_layers);
    return kept;
  }

  // Kept by the stage: `layers`, and the tensors of its ends, which are never offloaded.
  SavedTensors kept(const SavedTensors& layers) const {
    SavedTensors kept;
    if (content_.embedding) add(kept, embedding_tensors(model_, shard_), 1);
    add(kept, layers, 1);
    add(kept, head_tensors(model_, shard_), heads());
    // Of software with step messages the ledger counts all outputs of the step.
    if (shard_.software.keep_outputs && !shard_.rules.step_messages && !content_.head)
      add(kept, {{.name = "stage output", .size = boundary_activation(model_, shard_)}},
          1 + content_.mtp_layers);
    return kept;
  }

  // The tensors kept by a stage with a recompute pass: its input.
  SavedTensors input() const {
    if (content_.embedding) return {};
    return {{.name = "checkpoints", .size = boundary_activation(model_, shard_)}};
  }

  // The kept input doubles as the tensor that the first operator would save again.
  static void take_away(SavedTensors& tensors, std::string_view name, Bytes size) {
    for (SavedTensor& tensor : tensors)
      if (tensor.name == name) tensor.size = std::max(tensor.size - size, Bytes(0));
  }

  // Kept of a prediction beside its layer and its head.
  SavedTensors prediction_tensors() const {
    return mtp_tensors(model_, shard_.of_layers(content_.recomputed_mtp));
  }

  // Of this stage, one for each token that is predicted.
  std::int64_t heads() const { return content_.head ? model_.heads_of_tokens() : 0; }

  Bytes on_gpu(Bytes size) const { return share_of(size, 1 - habits_.offloaded); }
  SavedTensors on_gpu(SavedTensors tensors) const {
    for (SavedTensor& tensor : tensors) tensor.size = on_gpu(tensor.size);
    return tensors;
  }

  Bytes held() const {
    Bytes held{};
    for (const LayerCount& count : counts_) held += count.held * (count.plain + count.recomputed);
    if (content_.embedding) held += boundary_activation(model_, shard_);  // the gradient of its output
    return held + held_by_head() * heads();
  }
  Bytes held_by_head() const { return stagecraft::held_by_head(model_, shard_); }

  // A layer runs before the head has made its tensors.
  SavedTensors layer_forward(const LayerCount& count) const {
    return nonzero(
        {{"working tensors of a layer", std::max(count.running.forward - kept_of_head(), Bytes(0))}});
  }

  Bytes kept_of_head() const { return content_.head ? head_activation(model_, shard_) : Bytes(0); }

  // What a unit has let go of when it has run: what it kept, less what its weight gradients hold on to. Where
  // those hold more, it is negative.
  Bytes left_by_layer(const LayerCount& count, Half half) const {
    return (content_.recompute_pass ? count.whole : on_gpu(count.whole)) - held_by_layer(count, half);
  }
  static Bytes held_by_layer(const LayerCount& count, Half half) {
    return half == Half::kInput ? count.held : Bytes(0);
  }
  // What the backward makes anew of a layer's gradients, and of those of the head that are not reduced last, with the root.
  Bytes gradients_of(const LayerCount& count) const {
    const WeightSplit split = shard_.weight_split();
    const ParameterShare own =
        count.prediction ? mtp_parameters(model_, split) : layer_parameters(model_, count.kind, split);
    return share_of(Bytes(own.dense), habits_.gradients.dense) +
           share_of(Bytes(own.experts), habits_.gradients.experts);
  }
  Bytes gradients_of_head() const {
    if (!content_.head || reduces_root_last(shard_)) return Bytes(0);
    return share_of(Bytes(head_parameters(model_, shard_.tensor)), habits_.gradients.dense);
  }
  Bytes gradients_of_layers(std::int64_t LayerCount::*number) const {
    Bytes sum{};
    for (const LayerCount& count : counts_) sum += count.gradients * (count.*number);
    return sum;
  }
  Bytes all_gradients() const {
    return gradients_of_head() + gradients_of_layers(&LayerCount::plain) +
           gradients_of_layers(&LayerCount::recomputed);
  }

  Bytes left_by_head(Half half) const {
    return kept_of_head() - (content_.head && half == Half::kInput ? held_by_head() : Bytes(0));
  }

  // Most transient memory of the layers of one kind. The last layer of a stage runs backward first: the head
  // has run by then. Recomputed layers are the first layers of a stage: by then the other layers have run as
  // well. What is left behind grows or shrinks from layer to layer, so the first to run or the last is worst.
  SavedTensors layer_backward(const LayerCount& count, Half half) const {
    SavedTensors most;
    if (count.recomputed > 0) most = recomputed_backward(count, half);
    if (count.plain == 0) return most;
    Bytes others{};
    for (const LayerCount& other : counts_) others += left_by_layer(other, half) * other.plain;
    others -= left_by_layer(count, half);
    const Bytes first = gradients_of_head(),
                last = first + gradients_of_layers(&LayerCount::plain) - count.gradients;
    for (const auto& [before, made] : {std::pair{Bytes(0), first}, {others, last}})
      larger(most, backward_of(
                       count,
                       {.again = count.running.recomputed, .gone = left_by_head(half) + before, .made = made},
                       half));
    return most;
  }

  SavedTensors recomputed_backward(const LayerCount& count, Half half) const {
    const Bytes row = on_gpu(boundary_activation(model_, shard_));
    const Bytes held = held_by_layer(count, half);
    // The first operator of the group may save the checkpoint itself, which is already counted.
    const std::int64_t group = std::min(habits_.checkpoint_group, count.recomputed);
    const Bytes counted = input_among_tensors(model_, plain_).empty() ? Bytes(0) : row;
    Bytes expanded = count.whole * group - counted;
    if (count.prediction)
      expanded += total(mtp_tensors(model_, plain_)) - on_gpu(total(prediction_tensors()));
    const Bytes again = std::max(count.running.recomputed, expanded);

    std::int64_t checkpoints = 0;
    Bytes others = held * group;
    for (const LayerCount& other : counts_) {
      checkpoints += other.recomputed;
      others -= held_by_layer(other, half) * other.recomputed;
    }
    others += row * (ceil_div(checkpoints, habits_.checkpoint_group) - 1);
    // Layers of its own group that have run, where they hold more than what was made again of them.
    const Bytes of_group = std::max(held - count.whole, Bytes(0)) * (group - 1);
    const Bytes gone = left_by_head(half) + left_by_plain_layers(half) - of_group;
    const Bytes first = gradients_of_head() + gradients_of_layers(&LayerCount::plain),
                last = first + gradients_of_layers(&LayerCount::recomputed) - count.gradients * group;
    SavedTensors most;
    for (const auto& [before, made] : {std::pair{Bytes(0), first}, {others, last}})
      larger(most, backward_of(count, {.again = again, .gone = gone + before, .made = made}, half));
    return most;
  }

  // When a layer's backward runs: bytes that it recomputes, that the units before it have let go of in its micro-batch,
  // and the gradients that these have made.
  struct Before {
    Bytes again, gone, made;
  };
  SavedTensors backward_of(const LayerCount& count, const Before& units, Half half) const {
    const Bytes made = half == Half::kBoth ? units.made : Bytes(0);
    const Bytes beside = std::clamp(units.gone, Bytes(0), made);  // of them, where activations were
    const Bytes gone = units.gone - beside, again = units.again;
    const Bytes room = std::max(gone, Bytes(0));
    const Bytes needed = half == Half::kBoth ? count.running.backward : count.running.input_gradients;
    const Bytes working = std::max(needed - room, Bytes(0));
    const Bytes rest = room - (needed - working);
    return nonzero({{kGradientsMade, made - beside},
                    {kRecomputedLayer, std::max(again - rest, Bytes(0))},
                    {"working tensors of a layer", working},
                    {kHeldForWeightGradients, room - gone},
                    {"weight gradient", half == Half::kBoth ? weight_gradient(count.kind) : Bytes(0)}});
  }

  Bytes weight_gradient(LayerKind kind) const { return weight_gradient_transient(model_, plain_, kind); }

  // What the layers that are not recomputed have let go of and, for offloaded ones, their staging buffers.
  Bytes left_by_plain_layers(Half half) const {
    Bytes left{};
    std::vector<KeptLayers> staged;
    for (const LayerCount& count : counts_) {
      left += left_by_layer(count, half) * count.plain;
      if (!count.prediction) staged.push_back({.count = count.plain, .each = count.whole});
    }
    return left + share_of(on_their_way(staged), habits_.offloaded);
  }

  // Rows of all tokens of the tensor group, where a rank keeps only its own rows.
  Bytes gathered_input() const { return gathers() ? whole_rows() : Bytes(0); }
  Bytes whole_rows() const { return boundary_activation(model_, shard_) * (gathers() ? shard_.tensor : 1); }
  bool gathers() const { return shard_.sequence_parallel && shard_.tensor > 1; }

  // In chunks it makes the gradients as well.
  SavedTensors head_forward() const {
    return nonzero({{"logits", head_transient(model_, shard_).forward},
                    {"working tensors of the head", gathered_input()},
                    {"weight gradient of the head", shard_.chunks_loss() ? head_gradient() : Bytes(0)}});
  }

  // The input, gathered again, and its gradient.
  SavedTensors head_backward(Half half) const {
    if (shard_.chunks_loss()) return {};
    return nonzero({{"gradient of the logits", head_transient(model_, shard_).backward},
                    {"working tensors of the head", gathered_input() + whole_rows()},
                    {"weight gradient of the head", half == Half::kBoth ? head_gradient() : Bytes(0)}});
  }

  // Counts where the GEMM does not accumulate in place, or where the framework allocates a placeholder anyway.
  Bytes head_gradient() const {
    const bool own = !shard_.gradient_accumulation_fusion || shard_.software.gradient_placeholders;
    return own ? Bytes(state_bytes(shard_).weight * word_parameters(model_, shard_.tensor)) : Bytes(0);
  }

  // W runs the units in the order of I: what the head held is gone when the layers run, and all but the
  // gradient of its output when the embedding does.
  SavedTensors weight_gradients() const {
    SavedTensors most;
    if (content_.head && !shard_.chunks_loss())
      most = nonzero({{"weight gradient of the head", head_gradient()}});
    const Bytes head = content_.head ? held_by_head() : Bytes(0);
    for (const LayerCount& count : counts_)
      larger(most, nonzero({{"weight gradient", std::max(weight_gradient(count.kind) - head, Bytes(0))}}));
    if (content_.embedding) {
      larger(most, embedding_backward(held() - boundary_activation(model_, shard_)));
    } else if (content_.mtp_layers > 0) {
      const Bytes layer = held_for_weight_gradients(model_, plain_, model_.mtp_kind());
      larger(most, embedding_backward(layer * content_.mtp_layers + held_by_head() * heads()));
    }
    add(most, nonzero({{kGradientsMade, all_gradients()}}), 1);
    return most;
  }

  // The embedding gradient is a full 16-bit matrix. It is allocated when `kept` is freed: on the first stage,
  // all tensors of the micro-batch.
  SavedTensors embedding_backward(Bytes kept) const {
    const bool root = reduces_root_last(shard_);
    const Bytes made = root ? root_gradients() : embedding_gradient(model_, shard_);
    const Bytes before = all_gradients(), beside = std::min(before, kept);
    return nonzero(
        {{kGradientsMade, before - beside},
         {root ? "gradients of the root" : "word gradient", std::max(made - (kept - beside), Bytes(0))}});
  }

  // Unsharded gradients of what lies outside the layers, and their copy for the reduction, beyond a gathered layer and
  // its gradients, which the ledger counts all the time.
  Bytes root_gradients() const {
    const std::int64_t ranks = shard_.embedding_ranks();
    std::int64_t root = embedding_parameters(model_, ranks);
    if (content_.head && !model_.tied_embeddings) root += head_parameters(model_, shard_.tensor);
    std::int64_t layer = 0;
    for (const LayerCount& count : counts_)
      layer = std::max(layer, layer_parameters(model_, count.kind, shard_.weight_split()).all());
    const StateBytes bytes = state_bytes(shard_);
    return std::max(Bytes((root - layer) * (bytes.weight + bytes.gradient)), Bytes(0));
  }

  // Memory freed when the backward of multi-token prediction ends: its own tensors and those of all heads.
  Bytes gone_behind_mtp() const {
    Bytes own = total(prediction_tensors());
    own += content_.recomputed_mtp ? boundary_activation(model_, shard_)
                                   : total(layer_tensors(model_, plain_, model_.mtp_kind()));
    return on_gpu(own * content_.mtp_layers) + head_activation(model_, shard_) * heads();
  }

  const TransformerSpec& model_;
  const Shard& shard_;
  const Shard plain_;  // of layers that are not repeated
  const StageContent& content_;
  const PassHabits habits_;
  std::vector<LayerCount> counts_;
};

}  // namespace

std::span<const SavedTensor> StageTensors::transient(Pass pass) const {
  switch (pass) {
    case Pass::kForward:
      return forward_transient;
    case Pass::kBackward:
      return backward_transient;
    case Pass::kInputGradient:
      return input_gradient_transient;
    case Pass::kWeightGradient:
      return weight_gradient_transient;
    case Pass::kRecompute:
      return {};
  }
  return {};
}

Bytes share_of(Bytes size, double share) {
  return to_bytes(static_cast<double>(size.count()) * share);
}

Bytes on_their_way(const std::vector<KeptLayers>& layers) {
  Bytes first{}, second{};
  for (const KeptLayers& alike : layers) {
    for (std::int64_t i = 0; i < std::min<std::int64_t>(alike.count, 2); ++i) {
      second = std::max(second, std::min(first, alike.each));
      first = std::max(first, alike.each);
    }
  }
  return first + second;
}

PassHabits pass_habits(const RecomputeSpec& recompute, const OffloadSpec& offload) {
  const bool uniform =
      recompute.granularity == Recompute::kFull && recompute.method == RecomputeMethod::kUniform;
  return {.checkpoint_group = uniform ? std::max<std::int64_t>(recompute.layers, 1) : 1,
          .offloaded = offload.activations};
}

StageTensors stage_tensors(const TransformerSpec& model, const Shard& shard, const StageContent& content,
                           const PassHabits& habits) {
  return StageSum(model, shard, content, habits).tensors();
}

Bytes offloadable(const TransformerSpec& model, const Shard& shard, const StageContent& content,
                  const RecomputeSpec& recompute) {
  return StageSum(model, shard, content, pass_habits(recompute, OffloadSpec{})).offloadable();
}

Bytes embedding_gradient(const TransformerSpec& model, const Shard& shard) {
  return Bytes(state_bytes(shard).weight * word_parameters(model, shard.embedding_ranks()));
}

PassMemory pass_memory(const TransformerSpec& model, const Shard& shard, const StageContent& content,
                       const PassHabits& habits) {
  return pass_memory(stage_tensors(model, shard, content, habits));
}

PassMemory pass_memory(const StageTensors& stage) {
  const Bytes kept = total(stage.kept), again = total(stage.made_again);
  return {.kept = kept,
          .freed_by_input_gradient = kept + again - stage.held_for_weight_gradients,
          .forward_transient = total(stage.forward_transient),
          .backward_transient = total(stage.backward_transient),
          .input_gradient_transient = total(stage.input_gradient_transient),
          .weight_gradient_transient = total(stage.weight_gradient_transient),
          .made_again = again};
}

PassMemory pass_memory(const StagesSpec& model, const StageContent& content, std::size_t stage) {
  PassMemory memory;
  (content.recompute_pass ? memory.made_again : memory.kept) = of_stage(model.activation, stage);
  return memory;
}

}  // namespace stagecraft
