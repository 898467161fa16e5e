#include "formats/kineto_operator_table.hpp"

#include <algorithm>
#include <iterator>

namespace stagecraft {
namespace {

using Role = OperatorRole;
using Shape = SampleShape;
using Traffic = OperatorTraffic;

// Reads x and writes y.
constexpr int kForwardTensors = 2;
// Reads dy and what the forward kept, x or y, and writes dx.
constexpr int kBackwardTensors = 3;

constexpr KnownOperator forward(std::string_view name, Role role, std::string_view sample, Shape shape,
                                int operands = kForwardTensors) {
  return {.name = name,
          .role = role,
          .sample = sample,
          .traffic = Traffic::kOperands,
          .shape = shape,
          .operands = operands};
}

constexpr KnownOperator backward(std::string_view name, Role role, std::string_view sample, Shape shape,
                                 int operands = kBackwardTensors) {
  KnownOperator out = forward(name, role, sample, shape, operands);
  out.backward = true;
  return out;
}

// A norm, which has `statistics` bytes for each row: mean and reciprocal deviation in fp32, or one of them.
constexpr KnownOperator with_statistics(KnownOperator norm, int statistics) {
  norm.per_row = statistics;
  return norm;
}

constexpr KnownOperator layer_norm(std::string_view name) {
  return with_statistics(forward(name, Role::kNorm, "layernorm_forward", Shape::kRows), 8);
}
constexpr KnownOperator layer_norm_backward(std::string_view name) {
  return with_statistics(backward(name, Role::kNorm, "layernorm_backward", Shape::kRows), 8);
}
constexpr KnownOperator rms_norm(std::string_view name) {
  return with_statistics(forward(name, Role::kNorm, "rmsnorm_forward", Shape::kRows), 4);
}
constexpr KnownOperator rms_norm_backward(std::string_view name) {
  return with_statistics(backward(name, Role::kNorm, "rmsnorm_backward", Shape::kRows), 4);
}

constexpr KnownOperator with_mask(KnownOperator dropout) {
  dropout.masks = 1;
  return dropout;
}

constexpr KnownOperator lookup(std::string_view name, std::size_t indices) {
  KnownOperator out = forward(name, Role::kEmbedding, "embedding_forward", Shape::kRows);
  out.traffic = Traffic::kLookup;
  out.indices = indices;
  return out;
}

// Reads lists of g, w, m and v, and writes those of w, m and v.
constexpr KnownOperator adam(std::string_view name) {
  return {.name = name, .role = Role::kOptimizer, .sample = "adam", .traffic = Traffic::kList, .operands = 7};
}

constexpr KnownOperator of_tensors(std::string_view name, Role role) {
  return {.name = name, .role = role, .traffic = Traffic::kBroadcast};
}

constexpr KnownOperator kKnown[] = {
    layer_norm("aten::native_layer_norm"),
    layer_norm_backward("aten::native_layer_norm_backward"),
    rms_norm("aten::_fused_rms_norm"),
    rms_norm_backward("aten::_fused_rms_norm_backward"),
    layer_norm("FusedLayerNormAffineFunction"),
    layer_norm_backward("FusedLayerNormAffineFunctionBackward"),
    rms_norm("FusedRMSNormAffineFunction"),
    rms_norm_backward("FusedRMSNormAffineFunctionBackward"),
    forward("aten::_softmax", Role::kSoftmax, "softmax_forward", Shape::kScores),
    backward("aten::_softmax_backward_data", Role::kSoftmax, "softmax_backward", Shape::kScores),
    forward("ScaledUpperTriangMaskedSoftmax", Role::kSoftmax, "softmax_forward", Shape::kScores),
    backward("ScaledUpperTriangMaskedSoftmaxBackward", Role::kSoftmax, "softmax_backward", Shape::kScores),
    forward("aten::gelu", Role::kActivation, "gelu_forward", Shape::kRows),
    backward("aten::gelu_backward", Role::kActivation, "gelu_backward", Shape::kRows),
    forward("aten::silu", Role::kActivation, "silu_forward", Shape::kRows),
    backward("aten::silu_backward", Role::kActivation, "silu_backward", Shape::kRows),
    with_mask(forward("aten::native_dropout", Role::kDropout, "dropout_forward", Shape::kRows)),
    // Of the gradient and the mask alone.
    with_mask(backward("aten::native_dropout_backward", Role::kDropout, "dropout_backward", Shape::kRows, 2)),
    forward("FusedRoPEFunc", Role::kRope, "rope_forward", Shape::kHeads),
    backward("FusedRoPEFuncBackward", Role::kRope, "rope_backward", Shape::kHeads, 2),
    lookup("aten::embedding", 1),
    lookup("aten::index_select", 2),  // what the embedding calls
    backward("aten::embedding_dense_backward", Role::kEmbedding, "embedding_backward", Shape::kRows),
    forward("aten::_log_softmax", Role::kLoss, "log_softmax_forward", Shape::kVocabulary),
    backward("aten::_log_softmax_backward_data", Role::kLoss, "log_softmax_backward", Shape::kVocabulary),
    // A fused loss reads logits once.
    forward("SoftmaxCrossEntropyLoss", Role::kLoss, "cross_entropy_forward", Shape::kVocabulary, 1),
    {.name = "aten::nll_loss_forward", .role = Role::kLoss},
    {.name = "aten::nll_loss_backward", .role = Role::kLoss, .backward = true, .main = 1},
    adam("aten::_fused_adam_"),
    adam("aten::_fused_adamw_"),
    of_tensors("aten::add", Role::kAdd),
    of_tensors("aten::add_", Role::kAdd),
    of_tensors("aten::mul", Role::kMultiply),
    of_tensors("aten::mul_", Role::kMultiply),
    of_tensors("aten::sub", Role::kElementwise),
    of_tensors("aten::div", Role::kElementwise),
    of_tensors("aten::div_", Role::kElementwise),
    of_tensors("aten::neg", Role::kElementwise),
    of_tensors("aten::pow", Role::kElementwise),
    of_tensors("aten::rsqrt", Role::kElementwise),
    of_tensors("aten::sigmoid", Role::kElementwise),
    {.name = "aten::copy_", .role = Role::kMove, .traffic = Traffic::kMove},
    {.name = "aten::cat", .role = Role::kMove, .traffic = Traffic::kJoin},
};

// Lists that _foreach_ operators touch, and their type: "BinaryOpScalarFunctor<float, 1, 1, 0>" reads one
// list and writes one.
constexpr KnownOperator kForeach{
    .name = "aten::_foreach_", .role = Role::kElementwise, .traffic = Traffic::kForeach};

}  // namespace

const KnownOperator* known_operator(std::string_view name) {
  if (name.starts_with(kForeach.name)) return &kForeach;
  const auto* const found = std::ranges::find(kKnown, name, &KnownOperator::name);
  return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace stagecraft
