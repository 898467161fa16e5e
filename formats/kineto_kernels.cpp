#include "formats/kineto_kernels.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "formats/input_text.hpp"
#include "formats/kineto_arguments.hpp"
#include "formats/kineto_attention.hpp"

namespace stagecraft {
namespace {

std::string_view op_name(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const KinetoOp* op = trace.op_of(kernel);
  return op == nullptr ? std::string_view() : op->name;
}

// Positions of an operator's matrix arguments.
struct ProductOp {
  std::string_view name;
  std::size_t a, b;
  bool transposed_b = false;  // B is given as (n, k)
};
constexpr ProductOp kProductOps[] = {{"aten::mm", 0, 1},          {"aten::bmm", 0, 1},
                                     {"aten::addmm", 1, 2},       {"aten::addmm_", 1, 2},
                                     {"aten::baddbmm", 1, 2},     {"aten::baddbmm_", 1, 2},
                                     {"aten::_scaled_mm", 0, 1},  {"aten::_addmm_activation", 1, 2},
                                     {"aten::linear", 0, 1, true}};

const ProductOp* product_op(std::string_view name) {
  const auto* const found = std::ranges::find(kProductOps, name, &ProductOp::name);
  return found == std::end(kProductOps) ? nullptr : found;
}

// Rows x columns of a matrix, or of `batch` equal ones; the rows of a linear layer's input are all its
// tokens.
struct Matrices {
  std::int64_t batch = 1, rows = 0, columns = 0;
};

std::optional<Matrices> matrices_of(const Extents& dims, bool tokens) {
  if (dims.size() < 2 || (!tokens && dims.size() > 3)) return std::nullopt;
  Matrices out{.rows = 1, .columns = dims.back()};
  for (const std::int64_t extent : dims)
    if (extent <= 0 || extent > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  if (!tokens && dims.size() == 3) out.batch = dims.front();
  for (std::size_t i = tokens || dims.size() == 2 ? 0 : 1; i + 1 < dims.size(); ++i) {
    if (out.rows > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    out.rows *= dims[i];
  }
  return out;
}

// Storage order of the matrix: rows contiguous (1), columns contiguous (-1), unknown (0).
int order_of(const Extents& dims, const Extents& strides) {
  if (strides.size() != dims.size() || dims.size() < 2) return 0;
  if (strides.back() == 1) return 1;
  return strides[strides.size() - 2] == 1 ? -1 : 0;
}

// cuBLAS counts columns: it computes the transpose of C, with B first.
std::optional<GemmLayout> layout_of_strides(int a, int b) {
  if (a == 0 || b == 0) return std::nullopt;
  if (b < 0 && a > 0) return GemmLayout::kTN;
  if (b > 0 && a > 0) return GemmLayout::kNN;
  if (b > 0 && a < 0) return GemmLayout::kNT;
  return std::nullopt;
}

std::optional<GemmLayout> layout_of_name(std::string_view kernel) {
  constexpr std::pair<std::string_view, GemmLayout> kEndings[] = {
      {"_tn", GemmLayout::kTN}, {"_nn", GemmLayout::kNN}, {"_nt", GemmLayout::kNT}};
  for (const auto& [ending, layout] : kEndings) {
    const std::size_t at = kernel.find(ending);
    if (at == std::string_view::npos) continue;
    const std::size_t behind = at + ending.size();
    if (behind == kernel.size() || kernel[behind] == '_' || kernel[behind] == '>') return layout;
  }
  return std::nullopt;
}

std::string dtype_of(const KinetoInputs& inputs, const ProductOp& op, const std::string& kernel) {
  const auto type = [&](std::size_t i) { return i < inputs.types.size() ? inputs.types[i] : std::string(); };
  const std::string a = type(op.a), b = type(op.b);
  if (contains_any(a + b, {"Float8_e5m2"})) return "e5m2";
  if (contains_any(a + b, {"Float8_e4m3"})) return "e4m3";
  if (a.ends_with("BFloat16")) return "bf16";
  if (a.ends_with("Half")) return "fp16";
  if (a == "float") return contains_any(kernel, {"tf32", "s1688", "tensorop_f32"}) ? "tf32" : "fp32";
  return a.empty() ? "unknown" : a;
}

bool is_communication(const KinetoTrace& trace, const KinetoKernel& kernel, const std::string& name) {
  if (name.starts_with("nccl") || name.starts_with("rccl") ||
      contains_any(name, {"userbuffers", "mscclkernel"}))
    return true;
  return kernel.collective >= 0 && op_name(trace, kernel) == "record_param_comms";
}

WorkKind kind_of_name(const std::string& name, std::string_view op) {
  const std::string lower_op = lower_case(op);
  if (names_optimizer(name)) return WorkKind::kOptimizer;
  if (attention_is_backward(op).has_value() || names_attention(name) ||
      contains_any(lower_op, {"flash_att", "dot_product_flash", "dot_product_cudnn", "efficient_attention"}))
    return WorkKind::kAttention;
  if (names_loss(name) || names_loss(lower_op)) return WorkKind::kLoss;
  if (product_op(op) != nullptr ||
      contains_any(name, {"gemm", "nvjet", "cutlass", "splitkreduce", "xmma", "gemv"}))
    return WorkKind::kProduct;
  return WorkKind::kMemory;
}

std::optional<CollectiveKind> kind_of_collective(std::string_view name) {
  std::string word = lower_case(name);
  std::erase(word, '_');
  constexpr std::pair<std::string_view, CollectiveKind> kWords[] = {
      {"allreduce", CollectiveKind::kAllReduce},
      {"allgather", CollectiveKind::kAllGather},
      {"reducescatter", CollectiveKind::kReduceScatter},
      {"alltoall", CollectiveKind::kAllToAll},
      {"broadcast", CollectiveKind::kBroadcast},
      {"sendrecv", CollectiveKind::kSendReceive},
      {"send", CollectiveKind::kSendReceive},
      {"recv", CollectiveKind::kSendReceive}};
  for (const auto& [part, kind] : kWords)
    if (word.find(part) != std::string::npos) return kind;
  return std::nullopt;
}

std::int64_t element_size(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::int64_t> kSizes[] = {
      {"Float", 4}, {"BFloat16", 2}, {"Half", 2}, {"Double", 8}, {"Long", 8},
      {"Int", 4},   {"Short", 2},    {"Char", 1}, {"Byte", 1},   {"Bool", 1}};
  if (dtype.starts_with("Float8")) return 1;
  const auto* const found =
      std::ranges::find(kSizes, dtype, &std::pair<std::string_view, std::int64_t>::first);
  return found == std::end(kSizes) ? 0 : found->second;
}

}  // namespace

bool names_attention(std::string_view name) {
  return contains_any(name, {"flash", "fmha", "sdpa"});
}

bool names_loss(std::string_view name) {
  return contains_any(name,
                      {"cross_entropy", "crossentropy", "xentropy", "logsoftmax", "log_softmax", "nll_loss"});
}

bool names_optimizer(std::string_view name) {
  return contains_any(name, {"adam", "multi_tensor_apply", "multitensorapply", "lamb_", "l2norm"});
}

WorkKind work_kind(const KinetoTrace& trace, const KinetoKernel& kernel) {
  if (kernel.work != DeviceWork::kKernel) return WorkKind::kCopy;
  const std::string name = lower_case(trace.name_of(kernel));
  if (is_communication(trace, kernel, name)) return WorkKind::kCommunication;
  if (kernel.of_optimizer) return WorkKind::kOptimizer;
  return kind_of_name(name, op_name(trace, kernel));
}

std::optional<KinetoProduct> product_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  const ProductOp* op = product_op(op_name(trace, kernel));
  if (op == nullptr || kernel.work != DeviceWork::kKernel) return std::nullopt;
  const KinetoInputs& inputs = trace.ops[static_cast<std::size_t>(kernel.op)].inputs;
  if (inputs.dims.size() <= std::max(op->a, op->b)) return std::nullopt;
  const std::optional<Matrices> a = matrices_of(inputs.dims[op->a], op->transposed_b);
  std::optional<Matrices> b = matrices_of(inputs.dims[op->b], false);
  if (!a || !b) return std::nullopt;
  if (op->transposed_b) std::swap(b->rows, b->columns);
  if (a->columns != b->rows || a->batch != b->batch) return std::nullopt;
  const std::string name = lower_case(trace.name_of(kernel));
  std::optional<GemmLayout> layout;
  if (inputs.strides.size() > std::max(op->a, op->b)) {
    const int order = order_of(inputs.dims[op->b], inputs.strides[op->b]);
    layout = layout_of_strides(order_of(inputs.dims[op->a], inputs.strides[op->a]),
                               op->transposed_b ? -order : order);
  }
  return KinetoProduct{.m = a->rows,
                       .n = b->columns,
                       .k = a->columns,
                       .batch = a->batch,
                       .layout = layout ? layout : layout_of_name(name),
                       .dtype = dtype_of(inputs, *op, name)};
}

KinetoTraffic traffic_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  if (kernel.collective < 0) return {.kind = kind_of_collective(trace.name_of(kernel)), .size = {}};
  const KinetoCollective& said = trace.collectives[static_cast<std::size_t>(kernel.collective)];
  KinetoTraffic traffic{.kind = kind_of_collective(said.name), .size = {}, .ranks = said.group_size};
  const std::int64_t size = element_size(said.dtype);
  const std::int64_t elements = traffic.kind == CollectiveKind::kAllGather
                                    ? std::max(said.in_elements, said.out_elements)
                                    : said.in_elements;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 8;
  if (size > 0 && elements > 0 && elements < kMost) traffic.size = Bytes(size * elements);
  return traffic;
}

}  // namespace stagecraft
