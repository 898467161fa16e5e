// Tensors of the two ends of a model: embedding, head and loss, and those of multi-token prediction besides its layer.
#include <algorithm>

#include "models/layer_sizes.hpp"
#include "models/memory.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// Logits of `tokens` tokens that the head makes on a rank.
std::int64_t made_logits(const TransformerSpec& model, const Shard& shard, std::int64_t tokens) {
  return tokens * vocabulary_share(model, shard.tensor);
}

// And those that its loss reads.
std::int64_t read_logits(const TransformerSpec& model, const Shard& shard, std::int64_t tokens) {
  return tokens * vocabulary_share(model, shard.loss_ranks());
}

// Matrices of `logits` elements that a loss keeps, and has besides in either pass, in bytes.
struct LossMatrices {
  std::string_view name;  // of the kept one
  std::int64_t kept = 0, forward = 0, backward = 0;
};
LossMatrices matrices_of(const Shard& shard, std::int64_t logits) {
  const std::int64_t sixteen = element_bytes(shard.precision) * logits, fp32 = kFp32Bytes * logits;
  switch (shard.loss()) {
    case LossKind::kFused:
      return {.name = "logits, then their gradient", .kept = sixteen};
    case LossKind::k16Bit:
      return {.name = "logits", .kept = sixteen, .forward = 0, .backward = sixteen};
    case LossKind::kSoftmax:  // the gradient; the logits are freed before it
      return {.name = "softmax of the logits", .kept = fp32, .forward = sixteen, .backward = sixteen};
    case LossKind::kCompiled:
      return {.name = "softmax of the logits", .kept = fp32, .forward = sixteen, .backward = sixteen + fp32};
    case LossKind::kFp32Logits:  // gradients of the loss and of log-softmax
      return {.name = "softmax of the logits", .kept = fp32, .forward = fp32, .backward = 2 * fp32};
    case LossKind::kShardedFp32Logits:
      return {.name = "softmax of the logits", .kept = fp32, .forward = fp32, .backward = 3 * fp32};
  }
  return {};
}

// Of the logits of `tokens` tokens that a rank reads. Gathered ones lie beside those that it has made, and their
// gradient beside its own part of it.
LossMatrices loss_matrices(const TransformerSpec& model, const Shard& shard, std::int64_t tokens) {
  LossMatrices matrices = matrices_of(shard, read_logits(model, shard, tokens));
  if (!shard.gathers_logits()) return matrices;
  const std::int64_t own = element_bytes(shard.precision) * made_logits(model, shard, tokens);
  matrices.forward += own;
  matrices.backward += own;
  return matrices;
}

}  // namespace

SavedTensors mtp_tensors(const TransformerSpec& model, const Shard& shard) {
  const LayerSizes sizes(model, shard);
  SavedTensors tensors = embedding_tensors(model, shard);
  if (shard.recompute == Recompute::kFull) {
    keep(tensors, "multi-token embedding", sizes.residual());
    return tensors;
  }
  keep(tensors, "multi-token norm inputs", sizes.normed(2 * sizes.residual()));
  keep(tensors, "multi-token projection input", sizes.input(2 * sizes.column_input()));
  return tensors;
}

SavedTensors embedding_tensors(const TransformerSpec& model, const Shard& shard) {
  const LayerSizes sizes(model, shard);
  constexpr std::int64_t kTokenId = 8;
  SavedTensors tensors;
  keep(tensors, "token ids", kTokenId * shard.tokens());
  keep(tensors, "embedding dropout mask", sizes.mask());
  return tensors;
}

SavedTensors head_tensors(const TransformerSpec& model, const Shard& shard) {
  const Shard of_head = shard_of_head(shard);
  const LayerSizes sizes(model, of_head);
  SavedTensors tensors;
  keep(tensors, "final norm input", sizes.normed_stream());
  keep(tensors, "16-bit weights of the head", sizes.cast(word_parameters(model, shard.tensor)));
  if (shard.chunks_loss()) {
    keep(tensors, "gradient of the head input", sizes.residual());
    return tensors;
  }
  keep(tensors, "head input", sizes.column_input());
  const LossMatrices matrices = loss_matrices(model, shard, shard.tokens());
  keep(tensors, matrices.name, matrices.kept);
  return tensors;
}

Bytes head_activation(const TransformerSpec& model, const Shard& shard) {
  return total(head_tensors(model, shard));
}

Bytes head_logits(const TransformerSpec& model, const Shard& shard) {
  if (shard.chunks_loss()) return {};
  return Bytes(element_bytes(shard.precision) * made_logits(model, shard, shard.tokens()));
}

Bytes returned_logits(const TransformerSpec& model, const Shard& shard) {
  if (!shard.leaves_logits()) return {};
  const std::int64_t each = shard.software.fp32_logits ? kFp32Bytes : element_bytes(shard.precision);
  return Bytes(each * read_logits(model, shard, shard.tokens()));
}

Bytes held_by_head(const TransformerSpec& model, const Shard& shard) {
  if (shard.chunks_loss()) return {};
  return boundary_activation(model, shard) + head_logits(model, shard);
}

HeadTransient head_transient(const TransformerSpec& model, const Shard& shard) {
  if (!shard.chunks_loss()) {
    const LossMatrices all = loss_matrices(model, shard, shard.tokens());
    return {.forward = Bytes(all.forward), .backward = Bytes(all.backward)};
  }
  const LossMatrices chunk = loss_matrices(model, shard, loss_chunks(shard).front());
  const Shard of_head = shard_of_head(shard);
  const LayerSizes sizes(model, of_head);
  return {.forward = Bytes(sizes.column_input() + chunk.kept + std::max(chunk.forward, chunk.backward)),
          .backward = {}};
}

}  // namespace stagecraft
