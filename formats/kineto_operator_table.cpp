#include "formats/kineto_operator_table.hpp"

#include <algorithm>
#include <iterator>

namespace stagecraft {
namespace {

// Operands: a norm reads x and writes y; its backward reads dy and x and writes dx. Softmax's backward reads
// dy and y. A fused loss reads logits once. Adam reads g, w, m, v and writes w, m, v.
constexpr KnownOperator kKnown[] = {
    {"aten::native_layer_norm", OperatorRole::kNorm, false, "layernorm_forward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 2, 0, 8},
    {"aten::native_layer_norm_backward", OperatorRole::kNorm, true, "layernorm_backward",
     OperatorTraffic::kOperands, SampleShape::kRows, 0, 3, 0, 8},
    {"aten::_fused_rms_norm", OperatorRole::kNorm, false, "rmsnorm_forward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 2, 0, 4},
    {"aten::_fused_rms_norm_backward", OperatorRole::kNorm, true, "rmsnorm_backward",
     OperatorTraffic::kOperands, SampleShape::kRows, 0, 3, 0, 4},
    {"FusedLayerNormAffineFunction", OperatorRole::kNorm, false, "layernorm_forward",
     OperatorTraffic::kOperands, SampleShape::kRows, 0, 2, 0, 8},
    {"FusedLayerNormAffineFunctionBackward", OperatorRole::kNorm, true, "layernorm_backward",
     OperatorTraffic::kOperands, SampleShape::kRows, 0, 3, 0, 8},
    {"FusedRMSNormAffineFunction", OperatorRole::kNorm, false, "rmsnorm_forward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 2, 0, 4},
    {"FusedRMSNormAffineFunctionBackward", OperatorRole::kNorm, true, "rmsnorm_backward",
     OperatorTraffic::kOperands, SampleShape::kRows, 0, 3, 0, 4},
    {"aten::_softmax", OperatorRole::kSoftmax, false, "softmax_forward", OperatorTraffic::kOperands,
     SampleShape::kScores, 0, 2},
    {"aten::_softmax_backward_data", OperatorRole::kSoftmax, true, "softmax_backward",
     OperatorTraffic::kOperands, SampleShape::kScores, 0, 3},
    {"ScaledUpperTriangMaskedSoftmax", OperatorRole::kSoftmax, false, "softmax_forward",
     OperatorTraffic::kOperands, SampleShape::kScores, 0, 2},
    {"ScaledUpperTriangMaskedSoftmaxBackward", OperatorRole::kSoftmax, true, "softmax_backward",
     OperatorTraffic::kOperands, SampleShape::kScores, 0, 3},
    {"aten::gelu", OperatorRole::kActivation, false, "gelu_forward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 2},
    {"aten::gelu_backward", OperatorRole::kActivation, true, "gelu_backward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 3},
    {"aten::silu", OperatorRole::kActivation, false, "silu_forward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 2},
    {"aten::silu_backward", OperatorRole::kActivation, true, "silu_backward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 3},
    {"aten::native_dropout", OperatorRole::kDropout, false, "dropout_forward", OperatorTraffic::kOperands,
     SampleShape::kRows, 0, 2, 1},
    {"aten::native_dropout_backward", OperatorRole::kDropout, true, "dropout_backward",
     OperatorTraffic::kOperands, SampleShape::kRows, 0, 2, 1},
    {"FusedRoPEFunc", OperatorRole::kRope, false, "rope_forward", OperatorTraffic::kOperands,
     SampleShape::kHeads, 0, 2},
    {"FusedRoPEFuncBackward", OperatorRole::kRope, true, "rope_backward", OperatorTraffic::kOperands,
     SampleShape::kHeads, 0, 2},
    {"aten::embedding", OperatorRole::kEmbedding, false, "embedding_forward", OperatorTraffic::kLookup,
     SampleShape::kRows, 0, 2, 0, 0, 1},
    {"aten::index_select", OperatorRole::kEmbedding, false, "embedding_forward", OperatorTraffic::kLookup,
     SampleShape::kRows, 0, 2, 0, 0, 2},  // what the embedding calls
    {"aten::embedding_dense_backward", OperatorRole::kEmbedding, true, "embedding_backward",
     OperatorTraffic::kOperands, SampleShape::kRows, 0, 3},
    {"aten::_log_softmax", OperatorRole::kLoss, false, "log_softmax_forward", OperatorTraffic::kOperands,
     SampleShape::kVocabulary, 0, 2},
    {"aten::_log_softmax_backward_data", OperatorRole::kLoss, true, "log_softmax_backward",
     OperatorTraffic::kOperands, SampleShape::kVocabulary, 0, 3},
    {"SoftmaxCrossEntropyLoss", OperatorRole::kLoss, false, "cross_entropy_forward",
     OperatorTraffic::kOperands, SampleShape::kVocabulary, 0, 1},
    {"aten::nll_loss_forward", OperatorRole::kLoss, false},
    {"aten::nll_loss_backward", OperatorRole::kLoss, true, {}, {}, {}, 1},
    {"aten::_fused_adam_", OperatorRole::kOptimizer, false, "adam", OperatorTraffic::kList,
     SampleShape::kFlat, 0, 7},
    {"aten::_fused_adamw_", OperatorRole::kOptimizer, false, "adam", OperatorTraffic::kList,
     SampleShape::kFlat, 0, 7},
    {"aten::add", OperatorRole::kAdd, false, {}, OperatorTraffic::kBroadcast},
    {"aten::add_", OperatorRole::kAdd, false, {}, OperatorTraffic::kBroadcast},
    {"aten::mul", OperatorRole::kMultiply, false, {}, OperatorTraffic::kBroadcast},
    {"aten::mul_", OperatorRole::kMultiply, false, {}, OperatorTraffic::kBroadcast},
    {"aten::sub", OperatorRole::kElementwise, false, {}, OperatorTraffic::kBroadcast},
    {"aten::div", OperatorRole::kElementwise, false, {}, OperatorTraffic::kBroadcast},
    {"aten::div_", OperatorRole::kElementwise, false, {}, OperatorTraffic::kBroadcast},
    {"aten::neg", OperatorRole::kElementwise, false, {}, OperatorTraffic::kBroadcast},
    {"aten::pow", OperatorRole::kElementwise, false, {}, OperatorTraffic::kBroadcast},
    {"aten::rsqrt", OperatorRole::kElementwise, false, {}, OperatorTraffic::kBroadcast},
    {"aten::sigmoid", OperatorRole::kElementwise, false, {}, OperatorTraffic::kBroadcast},
    {"aten::copy_", OperatorRole::kMove, false, {}, OperatorTraffic::kMove},
    {"aten::cat", OperatorRole::kMove, false, {}, OperatorTraffic::kJoin},
};

// Lists that _foreach_ operators touch, and their type: "BinaryOpScalarFunctor<float, 1, 1, 0>" reads one
// list and writes one.
constexpr KnownOperator kForeach{
    "aten::_foreach_", OperatorRole::kElementwise, false, {}, OperatorTraffic::kForeach};

}  // namespace

const KnownOperator* known_operator(std::string_view name) {
  if (name.starts_with(kForeach.name)) return &kForeach;
  const auto* const found = std::ranges::find(kKnown, name, &KnownOperator::name);
  return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace stagecraft
