#include "formats/kineto_operators.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <vector>

#include "formats/input_text.hpp"

namespace stagecraft {
namespace {

using Extents = std::vector<std::int64_t>;

// How the bytes of an operator are counted.
enum class Traffic : std::uint8_t {
  kNotCounted,
  kOperands,   // so many tensors of the size and type of its main one
  kLookup,     // rows of a table, by indices
  kBroadcast,  // every tensor that comes in, and the result
  kMove,       // argument 1 into argument 0
  kList,       // so many lists like its main one; type by the kernel
  kForeach,    // lists by the kernel's functor
  kJoin,       // a list into one tensor
};

// The named extents of its samples.
enum class SampleShape : std::uint8_t { kFlat, kRows, kScores, kHeads, kVocabulary };

struct KnownOperator {
  std::string_view name;
  OperatorRole role;
  bool backward = false;
  std::string_view sample{};  // its name among samples; none: PyTorch's word
  Traffic traffic = Traffic::kNotCounted;
  SampleShape shape = SampleShape::kFlat;
  std::size_t main = 0;  // the argument that it is about
  int operands = 0, masks = 0;
  int per_row = 0;          // bytes of statistics a row
  std::size_t indices = 0;  // the argument of a lookup
};

// Operands: a norm reads x and writes y; its backward reads dy and x and writes dx. Softmax's backward reads
// dy and y. A fused loss reads logits once. Adam reads g, w, m, v and writes w, m, v.
constexpr KnownOperator kKnown[] = {
    {"aten::native_layer_norm", OperatorRole::kNorm, false, "layernorm_forward", Traffic::kOperands,
     SampleShape::kRows, 0, 2, 0, 8},
    {"aten::native_layer_norm_backward", OperatorRole::kNorm, true, "layernorm_backward", Traffic::kOperands,
     SampleShape::kRows, 0, 3, 0, 8},
    {"aten::_fused_rms_norm", OperatorRole::kNorm, false, "rmsnorm_forward", Traffic::kOperands,
     SampleShape::kRows, 0, 2, 0, 4},
    {"aten::_fused_rms_norm_backward", OperatorRole::kNorm, true, "rmsnorm_backward", Traffic::kOperands,
     SampleShape::kRows, 0, 3, 0, 4},
    {"FusedLayerNormAffineFunction", OperatorRole::kNorm, false, "layernorm_forward", Traffic::kOperands,
     SampleShape::kRows, 0, 2, 0, 8},
    {"FusedLayerNormAffineFunctionBackward", OperatorRole::kNorm, true, "layernorm_backward",
     Traffic::kOperands, SampleShape::kRows, 0, 3, 0, 8},
    {"FusedRMSNormAffineFunction", OperatorRole::kNorm, false, "rmsnorm_forward", Traffic::kOperands,
     SampleShape::kRows, 0, 2, 0, 4},
    {"FusedRMSNormAffineFunctionBackward", OperatorRole::kNorm, true, "rmsnorm_backward", Traffic::kOperands,
     SampleShape::kRows, 0, 3, 0, 4},
    {"aten::_softmax", OperatorRole::kSoftmax, false, "softmax_forward", Traffic::kOperands,
     SampleShape::kScores, 0, 2},
    {"aten::_softmax_backward_data", OperatorRole::kSoftmax, true, "softmax_backward", Traffic::kOperands,
     SampleShape::kScores, 0, 3},
    {"ScaledUpperTriangMaskedSoftmax", OperatorRole::kSoftmax, false, "softmax_forward", Traffic::kOperands,
     SampleShape::kScores, 0, 2},
    {"ScaledUpperTriangMaskedSoftmaxBackward", OperatorRole::kSoftmax, true, "softmax_backward",
     Traffic::kOperands, SampleShape::kScores, 0, 3},
    {"aten::gelu", OperatorRole::kActivation, false, "gelu_forward", Traffic::kOperands, SampleShape::kRows,
     0, 2},
    {"aten::gelu_backward", OperatorRole::kActivation, true, "gelu_backward", Traffic::kOperands,
     SampleShape::kRows, 0, 3},
    {"aten::silu", OperatorRole::kActivation, false, "silu_forward", Traffic::kOperands, SampleShape::kRows,
     0, 2},
    {"aten::silu_backward", OperatorRole::kActivation, true, "silu_backward", Traffic::kOperands,
     SampleShape::kRows, 0, 3},
    {"aten::native_dropout", OperatorRole::kDropout, false, "dropout_forward", Traffic::kOperands,
     SampleShape::kRows, 0, 2, 1},
    {"aten::native_dropout_backward", OperatorRole::kDropout, true, "dropout_backward", Traffic::kOperands,
     SampleShape::kRows, 0, 2, 1},
    {"FusedRoPEFunc", OperatorRole::kRope, false, "rope_forward", Traffic::kOperands, SampleShape::kHeads, 0,
     2},
    {"FusedRoPEFuncBackward", OperatorRole::kRope, true, "rope_backward", Traffic::kOperands,
     SampleShape::kHeads, 0, 2},
    {"aten::embedding", OperatorRole::kEmbedding, false, "embedding_forward", Traffic::kLookup,
     SampleShape::kRows, 0, 2, 0, 0, 1},
    {"aten::index_select", OperatorRole::kEmbedding, false, "embedding_forward", Traffic::kLookup,
     SampleShape::kRows, 0, 2, 0, 0, 2},  // what the embedding calls
    {"aten::embedding_dense_backward", OperatorRole::kEmbedding, true, "embedding_backward",
     Traffic::kOperands, SampleShape::kRows, 0, 3},
    {"aten::_log_softmax", OperatorRole::kLoss, false, "log_softmax_forward", Traffic::kOperands,
     SampleShape::kVocabulary, 0, 2},
    {"aten::_log_softmax_backward_data", OperatorRole::kLoss, true, "log_softmax_backward",
     Traffic::kOperands, SampleShape::kVocabulary, 0, 3},
    {"SoftmaxCrossEntropyLoss", OperatorRole::kLoss, false, "cross_entropy_forward", Traffic::kOperands,
     SampleShape::kVocabulary, 0, 1},
    {"aten::nll_loss_forward", OperatorRole::kLoss, false},
    {"aten::nll_loss_backward", OperatorRole::kLoss, true, {}, {}, {}, 1},
    {"aten::_fused_adam_", OperatorRole::kOptimizer, false, "adam", Traffic::kList, SampleShape::kFlat, 0, 7},
    {"aten::_fused_adamw_", OperatorRole::kOptimizer, false, "adam", Traffic::kList, SampleShape::kFlat, 0,
     7},
    {"aten::add", OperatorRole::kAdd, false, {}, Traffic::kBroadcast},
    {"aten::add_", OperatorRole::kAdd, false, {}, Traffic::kBroadcast},
    {"aten::mul", OperatorRole::kMultiply, false, {}, Traffic::kBroadcast},
    {"aten::mul_", OperatorRole::kMultiply, false, {}, Traffic::kBroadcast},
    {"aten::sub", OperatorRole::kElementwise, false, {}, Traffic::kBroadcast},
    {"aten::div", OperatorRole::kElementwise, false, {}, Traffic::kBroadcast},
    {"aten::div_", OperatorRole::kElementwise, false, {}, Traffic::kBroadcast},
    {"aten::neg", OperatorRole::kElementwise, false, {}, Traffic::kBroadcast},
    {"aten::pow", OperatorRole::kElementwise, false, {}, Traffic::kBroadcast},
    {"aten::rsqrt", OperatorRole::kElementwise, false, {}, Traffic::kBroadcast},
    {"aten::sigmoid", OperatorRole::kElementwise, false, {}, Traffic::kBroadcast},
    {"aten::copy_", OperatorRole::kMove, false, {}, Traffic::kMove},
    {"aten::cat", OperatorRole::kMove, false, {}, Traffic::kJoin},
};

// Where the arguments of fused attention stand; extents of Q are batch, length and heads in one order or the
// other, and the head size last.
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

const KinetoOp* op_behind(const KinetoTrace& trace, const KinetoKernel& kernel) {
  return kernel.op < 0 ? nullptr : &trace.ops[static_cast<std::size_t>(kernel.op)];
}

const KnownOperator* known_operator(std::string_view name) {
  const auto* const found = std::ranges::find(kKnown, name, &KnownOperator::name);
  return found == std::end(kKnown) ? nullptr : found;
}

const AttentionOperator* attention_operator(std::string_view name) {
  const auto* const found = std::ranges::find(kAttention, name, &AttentionOperator::name);
  return found == std::end(kAttention) ? nullptr : found;
}

bool has_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// 0 of no tensor, or one that no memory holds.
std::int64_t product(const Extents& dims) {
  constexpr std::int64_t kMost = 1LL << 50;
  if (dims.empty()) return 0;
  std::int64_t all = 1;
  for (const std::int64_t extent : dims) {
    if (extent <= 0 || all > kMost / extent) return 0;
    all *= extent;
  }
  return all;
}

// 0: not a type of PyTorch's that is known here.
int type_size(std::string_view type) {
  constexpr std::pair<std::string_view, int> kSizes[] = {
      {"float", 4}, {"c10::BFloat16", 2}, {"c10::Half", 2},   {"double", 8},       {"long int", 8},
      {"int", 4},   {"bool", 1},          {"signed char", 1}, {"unsigned char", 1}};
  if (type.starts_with("c10::Float8")) return 1;
  const auto* const found = std::ranges::find(kSizes, type, &std::pair<std::string_view, int>::first);
  return found == std::end(kSizes) ? 0 : found->second;
}

std::string dtype_word(std::string_view type) {
  if (type == "c10::BFloat16") return "bf16";
  if (type == "c10::Half") return "fp16";
  if (type == "float") return "fp32";
  return std::string(type);
}

// An argument of the operator, where it is a tensor.
struct Operand {
  const Extents* dims = nullptr;
  std::string_view type;
  [[nodiscard]] std::int64_t elements() const { return dims == nullptr ? 0 : product(*dims); }
};

Operand operand(const KinetoInputs& inputs, std::size_t at) {
  if (at >= inputs.dims.size() || at >= inputs.types.size()) return {};
  return {.dims = &inputs.dims[at], .type = inputs.types[at]};
}

// Extents of the result of tensors that are spread over each other; empty where they do not fit.
Extents spread(const Extents& a, const Extents& b) {
  Extents out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return {};
    out[out.size() - 1 - i] = std::max(of_a, of_b);
  }
  return out;
}

// What comes in, and the result: of the widest floating type, else of the type that all have.
struct Broadcast {
  std::int64_t elements = 0;
  double bytes = 0;
  std::string_view type;
};
std::optional<Broadcast> broadcast_of(const KinetoInputs& inputs) {
  Broadcast out;
  Extents result;
  int widest = 0;
  for (std::size_t i = 0; i < inputs.dims.size() && i < inputs.types.size(); ++i) {
    const std::int64_t elements = product(inputs.dims[i]);
    if (elements == 0) continue;  // a number
    const int size = type_size(inputs.types[i]);
    if (size == 0) return std::nullopt;
    out.bytes += static_cast<double>(elements) * size;
    if (size > widest) {
      widest = size;
      out.type = inputs.types[i];
    }
    result = result.empty() ? inputs.dims[i] : spread(result, inputs.dims[i]);
    if (result.empty()) return std::nullopt;
  }
  out.elements = product(result);
  out.bytes += static_cast<double>(out.elements) * widest;
  return out.elements > 0 ? std::optional(out) : std::nullopt;
}

// Elements of the tensor that the operator is about; 0: not recorded.
std::int64_t main_elements(const KnownOperator& known, const KinetoInputs& inputs) {
  switch (known.traffic) {
    case Traffic::kLookup: {
      const Operand table = operand(inputs, known.main), rows = operand(inputs, known.indices);
      if (table.dims == nullptr || table.dims->size() != 2) return 0;
      return product({rows.elements(), table.dims->back()});
    }
    case Traffic::kBroadcast: {
      const std::optional<Broadcast> all = broadcast_of(inputs);
      return all ? all->elements : 0;
    }
    case Traffic::kList:
    case Traffic::kForeach:
    case Traffic::kJoin:
      return known.main < inputs.list_elements.size() ? inputs.list_elements[known.main] : 0;
    case Traffic::kNotCounted:
    case Traffic::kOperands:
    case Traffic::kMove:
      break;
  }
  return operand(inputs, known.main).elements();
}

// Lists that _foreach_ operators touch, and their type: "BinaryOpScalarFunctor<float, 1, 1, 0>" reads one
// list and writes one.
constexpr KnownOperator kForeach{"aten::_foreach_", OperatorRole::kElementwise, false, {}, Traffic::kForeach};

const KnownOperator* known_or_foreach(std::string_view name) {
  if (name.starts_with(kForeach.name)) return &kForeach;
  return known_operator(name);
}

// "Functor<float, 1, 2, 0>": the text of its arguments.
std::vector<std::string_view> functor_arguments(std::string_view kernel, std::string_view functor) {
  const std::size_t at = kernel.find(functor);
  const std::size_t open = at == std::string_view::npos ? at : kernel.find('<', at);
  const std::size_t close = open == std::string_view::npos ? open : kernel.find_first_of("<>", open + 1);
  std::vector<std::string_view> out;
  if (close == std::string_view::npos) return out;
  std::string_view rest = kernel.substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    out.push_back(trimmed(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

std::optional<int> whole(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

// Type and number of lists of a kernel over lists; 0 lists: its name does not tell.
struct ListTraffic {
  int lists = 0;
  std::string_view type;
};
ListTraffic list_traffic(const KnownOperator& known, std::string_view kernel) {
  if (known.traffic == Traffic::kList) {
    const std::vector<std::string_view> arguments = functor_arguments(kernel, "FusedAdamMathFunctor");
    return arguments.empty() ? ListTraffic{} : ListTraffic{known.operands, arguments.front()};
  }
  for (const std::string_view functor : {"BinaryOp", "UnaryOp", "PointwiseOp", "TernaryOp"}) {
    const std::vector<std::string_view> arguments = functor_arguments(kernel, functor);
    if (arguments.size() < 4) continue;
    const std::optional<int> read = whole(arguments[2]);
    if (read && *read > 0 && *read < 8) return {*read + 1, arguments.front()};
  }
  return {};
}

// "CatArrayBatchedCopy<…OpaqueType<2u>, …>": bytes of an element; 0: not told.
int opaque_size(std::string_view kernel) {
  constexpr std::string_view kWord = "OpaqueType<";
  const std::size_t at = kernel.find(kWord);
  if (at == std::string_view::npos || at + kWord.size() >= kernel.size()) return 0;
  const char digit = kernel[at + kWord.size()];
  return digit >= '1' && digit <= '8' ? digit - '0' : 0;
}

std::string sample_word(const KnownOperator& known, std::string_view name) {
  if (!known.sample.empty()) return std::string(known.sample);
  const std::size_t colons = name.find("::");
  std::string word(colons == std::string_view::npos ? name : name.substr(colons + 2));
  while (word.ends_with('_')) word.pop_back();
  while (word.starts_with('_')) word.erase(0, 1);
  return word;
}

// Named extents of the main tensor; empty where it has not the form.
std::map<std::string, std::int64_t> sample_extents(SampleShape shape, const Extents& dims) {
  const std::int64_t all = product(dims), last = dims.empty() ? 0 : dims.back();
  if (all == 0) return {};
  switch (shape) {
    case SampleShape::kFlat:
      break;
    case SampleShape::kRows:
      return {{"tokens", all / last}, {"hidden", last}};
    case SampleShape::kVocabulary:
      return {{"tokens", all / last}, {"vocabulary", last}};
    case SampleShape::kScores:
      if (dims.size() < 3 || dims[dims.size() - 2] != last) return {};
      return {{"heads", all / last / last}, {"sequence", last}};
    case SampleShape::kHeads:
      if (dims.size() < 3) return {};
      return {{"tokens", all / last / dims[dims.size() - 2]},
              {"heads", dims[dims.size() - 2]},
              {"head_size", last}};
  }
  return {{"elements", all}};
}

constexpr const char* kNoShapes = "memory-bound kernels without shapes";
constexpr const char* kNotCounted = "memory-bound kernels of operators whose traffic is not counted";
constexpr const char* kNoType = "memory-bound kernels whose types are not recorded";

// A softmax may write another type than it reads, which only its kernel tells.
bool widens(std::string_view kernel) {
  return has_word(kernel, {"BFloat16, float, float", "Half, float, float"});
}

MemoryWorkOrReason operands_work(const KnownOperator& known, const KinetoInputs& inputs,
                                 std::string_view kernel) {
  const Operand main = operand(inputs, known.main);
  Extents dims = main.dims == nullptr ? Extents{} : *main.dims;
  const std::int64_t elements = main_elements(known, inputs);
  if (elements == 0) return kNoShapes;
  if (known.traffic == Traffic::kLookup) dims = {elements / dims.back(), dims.back()};
  const int size = type_size(main.type);
  if (size == 0) return kNoType;
  if (widens(kernel)) return "memory-bound kernels that write another type than they read";
  KinetoMemoryWork work{.op = std::string(known.sample),
                        .shape = sample_extents(known.shape, dims),
                        .dtype = dtype_word(main.type)};
  if (work.shape.empty())
    return "memory-bound kernels of other extents (softmax of unequal queries and keys)";
  work.bytes = static_cast<double>(elements) * (known.operands * size + known.masks) +
               static_cast<double>(elements / dims.back()) * known.per_row;
  return work;
}

MemoryWorkOrReason move_work(const KinetoInputs& inputs) {
  const Operand to = operand(inputs, 0), from = operand(inputs, 1);
  const std::int64_t elements = to.elements();
  if (elements == 0 || from.elements() == 0) return kNoShapes;
  const int written = type_size(to.type), read = type_size(from.type);
  if (written == 0 || read == 0) return kNoType;
  const bool same = to.type == from.type;
  return KinetoMemoryWork{
      .op = same ? "copy" : "cast",
      .shape = {{"elements", elements}},
      .dtype = same ? dtype_word(to.type) : dtype_word(from.type) + " to " + dtype_word(to.type),
      .bytes = static_cast<double>(elements) * written + static_cast<double>(from.elements()) * read};
}

MemoryWorkOrReason list_work(const KnownOperator& known, const KinetoOp& op, std::string_view kernel) {
  const std::int64_t elements = main_elements(known, op.inputs);
  if (elements == 0)
    return "kernels over lists of tensors without shapes (PyTorch records 30 tensors at most)";
  KinetoMemoryWork work{.op = sample_word(known, op.name), .shape = {{"elements", elements}}, .dtype = {}};
  if (known.traffic == Traffic::kJoin) {
    const int size = opaque_size(kernel);
    if (size == 0) return kNoType;
    work.dtype = std::to_string(size) + " bytes";
    work.bytes = 2.0 * size * static_cast<double>(elements);
    return work;
  }
  const ListTraffic traffic = list_traffic(known, kernel);
  const int size = type_size(traffic.type);
  if (traffic.lists == 0 || size == 0) return kNoType;
  work.dtype = dtype_word(traffic.type);
  work.bytes = static_cast<double>(traffic.lists) * size * static_cast<double>(elements);
  return work;
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

// Names of kernels that extensions launch without an operator of their own.
OperatorWork work_of_name(const std::string& name) {
  const bool backward = has_word(name, {"bwd", "backward"});
  if (has_word(name, {"flash", "fmha", "sdpa"})) return {OperatorRole::kAttention, backward};
  if (has_word(name, {"layer_norm", "layernorm", "rms_norm", "rmsnorm", "ln_fwd", "ln_bwd", "cuapplylayer",
                      "cuapplyrms", "cucomputegrad", "cucomputepartgrad"}))
    return {OperatorRole::kNorm, backward || name.find("cucompute") != std::string::npos};
  if (has_word(name, {"cross_entropy", "crossentropy", "xentropy", "logsoftmax", "log_softmax", "nll_loss"}))
    return {OperatorRole::kLoss, backward};
  if (has_word(name, {"softmax"})) return {OperatorRole::kSoftmax, backward};
  if (has_word(name, {"fused_rope", "rotary"})) return {OperatorRole::kRope, backward};
  if (has_word(name, {"gelu", "silu", "swiglu", "gated_act"}))
    return {OperatorRole::kActivation, backward || has_word(name, {"dgelu", "dsilu", "dswiglu", "dgated"})};
  if (has_word(name, {"adam", "multi_tensor_apply", "l2norm"})) return {OperatorRole::kOptimizer, false};
  if (has_word(name, {"dropout"})) return {OperatorRole::kDropout, backward};
  if (has_word(name, {"embedding"})) return {OperatorRole::kEmbedding, backward};
  return {};
}

}  // namespace

bool is_attention_operator(std::string_view name) {
  return attention_operator(name) != nullptr;
}

OperatorWork operator_work(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const KinetoOp* op = op_behind(trace, kernel);
  if (op != nullptr) {
    if (const AttentionOperator* attention = attention_operator(op->name)) {
      OperatorWork work{.role = OperatorRole::kAttention, .backward = attention->backward};
      const AttentionOrReason shape = attention_of(trace, kernel);
      if (const auto* a = std::get_if<KinetoAttention>(&shape))
        work.elements = product({a->batch, a->heads, a->queries, a->keys});
      return work;
    }
    if (const KnownOperator* known = known_or_foreach(op->name)) {
      const bool by_thread = known->role >= OperatorRole::kAdd;
      return {.role = kernel.of_optimizer ? OperatorRole::kOptimizer : known->role,
              .backward = by_thread ? kernel.of_backward : known->backward,
              .elements = main_elements(*known, op->inputs)};
    }
  }
  if (kernel.of_optimizer) return {.role = OperatorRole::kOptimizer};
  return kernel.work == DeviceWork::kKernel ? work_of_name(lower_case(trace.name_of(kernel)))
                                            : OperatorWork{};
}

AttentionOrReason attention_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const KinetoOp* op = op_behind(trace, kernel);
  const AttentionOperator* known = op == nullptr ? nullptr : attention_operator(op->name);
  if (known == nullptr) return "attention of operators whose arguments are not known";
  const Operand q = operand(op->inputs, known->query), k = operand(op->inputs, known->query + 1),
                v = operand(op->inputs, known->query + 2);
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
  // FlashAttention 3 is called by the same operator where PyTorch was told to.
  if (out.implementation == "fa2" && has_word(lower_case(name), {"sm90"})) out.implementation = "fa3";
  return out;
}

MemoryWorkOrReason memory_work_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const KinetoOp* op = op_behind(trace, kernel);
  if (op == nullptr) return "memory-bound kernels that no operator is tied to";
  const KnownOperator* known = known_or_foreach(op->name);
  if (known == nullptr || known->traffic == Traffic::kNotCounted) return kNotCounted;
  const std::string& name = trace.name_of(kernel);
  switch (known->traffic) {
    case Traffic::kOperands:
    case Traffic::kLookup:
      return operands_work(*known, op->inputs, name);
    case Traffic::kMove:
      return move_work(op->inputs);
    case Traffic::kList:
    case Traffic::kForeach:
    case Traffic::kJoin:
      return list_work(*known, *op, name);
    case Traffic::kBroadcast:
    case Traffic::kNotCounted:
      break;
  }
  const std::optional<Broadcast> all = broadcast_of(op->inputs);
  if (!all) return op->inputs.dims.empty() ? kNoShapes : kNoType;
  return KinetoMemoryWork{.op = sample_word(*known, op->name),
                          .shape = {{"elements", all->elements}},
                          .dtype = dtype_word(all->type),
                          .bytes = all->bytes};
}

}  // namespace stagecraft
