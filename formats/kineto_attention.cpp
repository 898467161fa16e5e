#include "formats/kineto_attention.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/text.hpp"
#include "formats/input_text.hpp"
#include "formats/kineto_arguments.hpp"

namespace stagecraft {
namespace {

// Positions of the arguments of fused attention. Extents of Q are batch, length and heads in either order,
// and the head size last.
struct AttentionOperator {
  std::string_view name, implementation;
  bool backward;
  std::size_t query;  // K and V follow
  std::size_t mask;   // "True", or 1 and 2 of a kind of mask
  bool heads_first;
};
constexpr AttentionOperator kAttention[] = {
    {"aten::_flash_attention_forward", "fa2", false, 0, 8, false},
    {"aten::_flash_attention_backward", "fa2", true, 1, 11, false},
    {"flash_attn::_flash_attn_forward", "fa2", false, 0, 5, false},
    {"flash_attn::_flash_attn_backward", "fa2", true, 1, 11, false},
    {"aten::_efficient_attention_forward", "efficient", false, 0, 9, false},
    {"aten::_efficient_attention_backward", "efficient", true, 1, 14, false},
    {"aten::_cudnn_attention_forward", "cudnn", false, 0, 10, true},
    {"aten::_scaled_dot_product_cudnn_attention", "cudnn", false, 0, 6, true},
    {"aten::_scaled_dot_product_cudnn_attention_backward", "cudnn", true, 1, 14, true},
    {"aten::_cudnn_attention_backward", "cudnn", true, 1, 14, true},
};

const AttentionOperator* attention_operator(std::string_view name) {
  const auto* const found = std::ranges::find(kAttention, name, &AttentionOperator::name);
  return found == std::end(kAttention) ? nullptr : found;
}

// Is the mask causal? nullopt: not recorded, or a word that is not known.
std::optional<bool> mask_of(const KinetoInputs& inputs, std::size_t at) {
  if (at >= inputs.values.size()) return std::nullopt;
  const std::string& word = inputs.values[at];
  if (word == "True" || word == "true" || word == "1" || word == "2") return true;
  if (word == "False" || word == "false" || word == "0") return false;
  return std::nullopt;
}

// "flash_fwd_kernel<…traits<…>, Is_dropout, Is_causal, …>" of FlashAttention 2.
std::optional<bool> mask_of_kernel(std::string_view kernel) {
  std::size_t at = kernel.find("_kernel_traits<");
  if (at == std::string_view::npos) return std::nullopt;
  at = kernel.find('<', at);
  int depth = 0;
  for (; at < kernel.size(); ++at) {
    depth += kernel[at] == '<' ? 1 : kernel[at] == '>' ? -1 : 0;
    if (depth == 0) break;
  }
  const std::size_t dropout = kernel.find(',', at);
  const std::size_t causal = dropout == std::string_view::npos ? dropout : kernel.find(',', dropout + 1);
  if (causal == std::string_view::npos) return std::nullopt;
  const std::string_view word =
      trimmed(kernel.substr(causal + 1, kernel.find_first_of(",>", causal + 1) - causal - 1));
  if (word == "true") return true;
  if (word == "false") return false;
  return std::nullopt;
}

}  // namespace

std::optional<bool> attention_is_backward(std::string_view name) {
  const AttentionOperator* known = attention_operator(name);
  return known == nullptr ? std::nullopt : std::optional(known->backward);
}

AttentionOrReason attention_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const KinetoOp* op = trace.op_of(kernel);
  const AttentionOperator* known = op == nullptr ? nullptr : attention_operator(op->name);
  if (known == nullptr) return "attention of operators whose arguments are not known";
  const TensorArgument q = tensor_argument(op->inputs, known->query),
                       k = tensor_argument(op->inputs, known->query + 1),
                       v = tensor_argument(op->inputs, known->query + 2);
  if (q.elements() == 0 || k.elements() == 0 || v.elements() == 0) return "attention without shapes";
  if (q.dims->size() != 4 || k.dims->size() != 4 || v.dims->size() != 4)
    return "attention over packed samples, whose lengths are not recorded";
  const std::string& name = trace.name_of(kernel);
  std::optional<bool> causal = mask_of(op->inputs, known->mask);
  if (!causal) causal = mask_of_kernel(name);
  if (!causal) return "attention whose mask is not recorded (newer versions of PyTorch do)";
  const std::size_t length = known->heads_first ? 2 : 1, heads = known->heads_first ? 1 : 2;
  KinetoAttention out{.backward = known->backward,
                      .batch = q.dims->front(),
                      .heads = (*q.dims)[heads],
                      .kv_heads = (*k.dims)[heads],
                      .queries = (*q.dims)[length],
                      .keys = (*k.dims)[length],
                      .head_size = q.dims->back(),
                      .value_size = v.dims->back(),
                      .causal = *causal,
                      .implementation = std::string(known->implementation),
                      .dtype = dtype_word(q.type)};
  // PyTorch can be configured to call FlashAttention 3 through the same operator.
  if (out.implementation == "fa2" && contains_any(lower_case(name), {"sm90"})) out.implementation = "fa3";
  return out;
}

}  // namespace stagecraft
