#include "calibrate/bench/kernels_shapes.hpp"

#include <algorithm>
#include <map>

namespace stagecraft {
namespace {

using Extents = std::map<std::string, std::int64_t>;

std::vector<std::string> names_of(KernelShape shape) {
  switch (shape) {
    case KernelShape::kRows:
      return {"tokens", "hidden"};
    case KernelShape::kScores:
      return {"heads", "sequence"};
    case KernelShape::kHeads:
      return {"tokens", "heads", "head_size"};
    case KernelShape::kVocabulary:
      return {"tokens", "vocabulary"};
    case KernelShape::kFlat:
      return {"elements"};
    case KernelShape::kRouted:
      return {"tokens", "hidden", "topk"};
  }
  return {};
}

// Widths: hidden sizes of GPT-3 (2048, 5120, 12288), Llama (4096, 8192, 16384) and thin models (1024), and
// what tensor parallelism of 2, 4 and 8 leaves of their FFN widths (14336, 28672, 49152, 53248).
std::vector<Extents> extents_of(const KernelOp& op) {
  std::vector<std::vector<std::int64_t>> rows;
  const bool ffn = op.name.starts_with("bias_gelu") || op.name.starts_with("swiglu");
  switch (op.shape) {
    case KernelShape::kRows:
      rows = ffn ? std::vector<std::vector<std::int64_t>>{{4096, 14336}, {8192, 3584}, {2048, 6144},
                                                          {8192, 28672}, {4096, 1792}, {512, 3584},
                                                          {512, 1792}}
                 : std::vector<std::vector<std::int64_t>>{
                       {4096, 4096}, {2048, 12288}, {8192, 8192}, {512, 4096},   {16384, 4096}, {8192, 1024},
                       {8192, 5120}, {2048, 2048},  {512, 1024},  {2048, 16384}, {8192, 16384}};
      break;
    case KernelShape::kScores:
      rows = {{12, 2048}, {32, 2048}, {8, 4096}, {16, 1024}, {4, 8192}, {16, 512}};
      break;
    case KernelShape::kHeads:
      rows = {{4096, 32, 128}, {8192, 8, 128}, {2048, 12, 128}, {16384, 32, 128},
              {4096, 16, 64},  {8192, 8, 256}, {8192, 1, 128},  {512, 4, 128}};
      break;
    case KernelShape::kVocabulary:
      rows = {{4096, 16032}, {2048, 6400}, {8192, 32064}, {4096, 128256}, {2048, 50304}, {512, 16032}};
      break;
    case KernelShape::kFlat:
      for (const int log2 : {26, 24, 28, 22, 20}) rows.push_back({std::int64_t{1} << log2});
      break;
    case KernelShape::kRouted:
      rows = {{4096, 7168, 8}, {4096, 4096, 2}, {8192, 6144, 2}, {1024, 7168, 8}, {16384, 2048, 8}};
      break;
  }
  const std::vector<std::string> names = names_of(op.shape);
  std::vector<Extents> all;
  for (const auto& row : rows) {
    Extents extents;
    for (std::size_t i = 0; i < names.size(); ++i) extents[names[i]] = row[i];
    all.push_back(extents);
  }
  return all;
}

std::int64_t width_of(KernelShape shape, const Extents& e) {
  switch (shape) {
    case KernelShape::kRows:
    case KernelShape::kRouted:
      return e.at("hidden");
    case KernelShape::kScores:
      return e.at("sequence");
    case KernelShape::kHeads:
      return e.at("head_size");
    case KernelShape::kVocabulary:
      return e.at("vocabulary");
    case KernelShape::kFlat:
      return e.at("elements");
  }
  return 0;
}

std::string why_not(const KernelOp& op, const Sample& sample) {
  const std::int64_t width = width_of(op.shape, sample.shape);
  for (const auto& [name, extent] : sample.shape)
    if (extent <= 0) return name + " = " + std::to_string(extent) + " is not positive";
  const bool row_kept = op.shape == KernelShape::kScores || op.name.find("norm_") != std::string_view::npos;
  if (row_kept && width > 16384)
    return "no kernel keeps a row of " + std::to_string(width) + " elements (16384 at most)";
  if (op.shape == KernelShape::kScores && sample.tags.at("variant") == "unfused" && width > 8192)
    return "the unfused softmax keeps 8192 elements at most";
  const std::int64_t unit = op.shape == KernelShape::kHeads ? 16 : op.name == "transpose" ? 64 : 8;
  if (width % unit != 0) return "rows must be a multiple of " + std::to_string(unit) + " elements";
  if (op.shape != KernelShape::kFlat && op.shape != KernelShape::kScores &&
      sample.shape.at("tokens") % unit != 0)
    return "tokens must be a multiple of " + std::to_string(unit);
  const std::int64_t copies = op.shape == KernelShape::kRouted ? sample.shape.at("topk") : 1;
  if (kernel_elements(op, sample) * copies >= (std::int64_t{1} << 32)) return "more than 2^32 elements";
  return {};
}

}  // namespace

// Unfused softmax backward: 6 + 12 + 6 + 4. The inventory has 24: it takes 8 for the step that reads dY and Y
// and writes dX, which is 12 in fp32. Unfused unpermute: gather 4, weigh 4, sum 2 a copy, and 2. Cross
// entropy fused: one read, then one read and one write over the logits. Adam: 28 and the bf16 copy: 2 fused;
// unfused eleven steps.
const std::vector<KernelOp>& kernel_ops() {
  using enum KernelShape;
  static const std::vector<KernelOp> ops = {
      {.name = "bias_gelu_forward", .shape = kRows, .fused = 4, .unfused = 8, .unfused_launches = 2},
      {.name = "bias_gelu_backward", .shape = kRows, .fused = 6, .unfused = 12, .unfused_launches = 4},
      {.name = "swiglu_forward", .shape = kRows, .fused = 6, .unfused = 10, .unfused_launches = 2},
      {.name = "swiglu_backward", .shape = kRows, .fused = 10, .unfused = 26, .unfused_launches = 5},
      {.name = "bias_dropout_add_forward", .shape = kRows, .fused = 7, .unfused = 15, .unfused_launches = 3},
      {.name = "dropout_backward", .shape = kRows, .fused = 5},
      {.name = "softmax_forward", .shape = kScores, .fused = 4, .unfused = 29, .unfused_launches = 5},
      {.name = "softmax_backward", .shape = kScores, .fused = 6, .unfused = 28, .unfused_launches = 4},
      {.name = "layernorm_forward", .shape = kRows, .fused = 4, .per_token = 8},
      {.name = "layernorm_backward", .shape = kRows, .fused = 6, .per_column = 4},
      {.name = "layernorm_residual_backward", .shape = kRows, .fused = 8, .per_column = 4},
      {.name = "rmsnorm_forward",
       .shape = kRows,
       .fused = 4,
       .unfused = 36,
       .per_token = 4,
       .unfused_launches = 6},
      {.name = "rmsnorm_backward",
       .shape = kRows,
       .fused = 6,
       .unfused = 60,
       .per_column = 4,
       .unfused_launches = 12},
      {.name = "rmsnorm_residual_backward", .shape = kRows, .fused = 8, .per_column = 4},
      {.name = "rope_forward", .shape = kHeads, .fused = 4, .unfused = 20, .unfused_launches = 6},
      {.name = "rope_backward", .shape = kHeads, .fused = 4, .unfused = 20, .unfused_launches = 6},
      {.name = "cross_entropy_forward",
       .shape = kVocabulary,
       .fused = 2,
       .unfused = 38,
       .unfused_launches = 6},
      {.name = "cross_entropy_backward",
       .shape = kVocabulary,
       .fused = 4,
       .unfused = 14,
       .unfused_launches = 3},
      {.name = "bias_gradient", .shape = kRows, .fused = 2},
      {.name = "adam", .shape = kFlat, .fused = 30, .unfused = 102, .unfused_launches = 11},
      {.name = "gradient_norm", .shape = kFlat, .fused = 4},
      {.name = "weight_copy", .shape = kFlat, .fused = 6},
      {.name = "gradient_copy", .shape = kFlat, .fused = 6},
      {.name = "gradient_accumulation", .shape = kFlat, .fused = 10},
      {.name = "transpose", .shape = kRows, .fused = 4},
      {.name = "head_transposition", .shape = kHeads, .fused = 4},
      {.name = "permute_forward", .shape = kRouted, .fused = 2, .fused_per_copy = 2},
      {.name = "permute_backward", .shape = kRouted, .fused = 2, .fused_per_copy = 2},
      {.name = "unpermute_forward",
       .shape = kRouted,
       .fused = 2,
       .unfused = 2,
       .fused_per_copy = 2,
       .unfused_per_copy = 10,
       .unfused_launches = 3},
      {.name = "unpermute_backward", .shape = kRouted, .fused = 2, .fused_per_copy = 4},
      {.name = "embedding_forward", .shape = kRows, .fused = 4},
      {.name = "embedding_backward", .shape = kRows, .fused = 10},
  };
  return ops;
}

const KernelOp* find_kernel_op(std::string_view name) {
  const auto& ops = kernel_ops();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [name](const KernelOp& op) { return op.name == name; });
  return found == ops.end() ? nullptr : &*found;
}

std::int64_t kernel_elements(const KernelOp& op, const Sample& sample) {
  std::int64_t elements = 1;
  for (const auto& [name, extent] : sample.shape)
    if (name != "topk") elements *= extent;
  return op.shape == KernelShape::kScores ? elements * sample.shape.at("sequence") : elements;
}

double kernel_bytes(const KernelOp& op, const Sample& sample) {
  const bool fused = sample.tags.at("variant") == "fused";
  std::int64_t per_element = fused ? op.fused : op.unfused;
  if (op.shape == KernelShape::kRouted)
    per_element += sample.shape.at("topk") * (fused ? op.fused_per_copy : op.unfused_per_copy);
  std::int64_t bytes = per_element * kernel_elements(op, sample);
  if (op.per_token != 0) bytes += op.per_token * sample.shape.at("tokens");
  if (op.per_column != 0) bytes += op.per_column * sample.shape.at("hidden");
  return static_cast<double>(bytes);
}

std::string complete_kernel_point(Sample& sample) {
  const KernelOp* op = find_kernel_op(sample.op);
  if (op == nullptr) return "no such operator: " + sample.op;
  for (const std::string& name : names_of(op->shape))
    if (!sample.shape.contains(name)) return sample.op + " needs the extent " + name;
  if (sample.shape.size() != names_of(op->shape).size())
    return sample.op + " has extents that it does not know";
  sample.tags.try_emplace("variant", "fused");
  sample.tags.try_emplace("dtype", "bf16");
  sample.tags.try_emplace("cache", "cold");
  const std::string& variant = sample.tags.at("variant");
  if (variant != "fused" && (variant != "unfused" || op->unfused == 0))
    return sample.op + " has no form " + variant;
  if (sample.tags.at("dtype") != "bf16" || sample.tags.at("cache") != "cold")
    return sample.op + " is measured in bf16 with cold L2 only";
  if (sample.tags.size() != 3) return sample.op + " has tags that it does not know";
  if (std::string reason = why_not(*op, sample); !reason.empty()) return reason;
  sample.bytes = kernel_bytes(*op, sample);
  return {};
}

std::vector<Sample> kernel_points() {
  std::vector<Sample> points;
  for (const KernelOp& op : kernel_ops())
    for (const Extents& extents : extents_of(op))
      for (const char* variant : {"fused", "unfused"}) {
        Sample point;
        point.family = "kernel";
        point.op = op.name;
        point.shape = extents;
        point.tags["variant"] = variant;
        if (complete_kernel_point(point).empty()) points.push_back(point);
      }
  return points;
}

}  // namespace stagecraft
