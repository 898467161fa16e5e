#include "calibrate/bench/attention_shapes.hpp"

namespace stagecraft {

Sample attention_sample(const AttentionPoint& shape) {
  Sample sample;
  sample.family = "attention";
  sample.op = shape.backward ? "flash_backward" : "flash_forward";
  sample.shape = {{"batch", shape.batch},
                  {"heads", shape.heads},
                  {"kv_heads", shape.kv_heads},
                  {"sequence", shape.sequence},
                  {"head_size", shape.head_size}};
  sample.tags = {{"dtype", "bf16"},
                 {"causal", shape.causal ? "true" : "false"},
                 {"implementation", "cudnn"},
                 {"cache", "cold"}};
  const auto tokens = static_cast<double>(shape.batch * shape.sequence);
  const auto heads = static_cast<double>(shape.heads), kv_heads = static_cast<double>(shape.kv_heads);
  const auto size = static_cast<double>(shape.head_size), length = static_cast<double>(shape.sequence);
  const double forward = 4 * tokens * length * heads * size * (shape.causal ? 0.5 : 1);
  const double operands = 2 * tokens * size * (2 * heads + 2 * kv_heads), statistics = 4 * tokens * heads;
  sample.flops = shape.backward ? 2.5 * forward : forward;
  sample.bytes = (shape.backward ? 2 : 1) * operands + statistics;
  return sample;
}

AttentionPoint attention_shape(const Sample& sample) {
  return {.batch = sample.shape.at("batch"),
          .heads = sample.shape.at("heads"),
          .kv_heads = sample.shape.at("kv_heads"),
          .sequence = sample.shape.at("sequence"),
          .head_size = sample.shape.at("head_size"),
          .causal = sample.tags.at("causal") == "true",
          .backward = sample.op == "flash_backward"};
}

// The first are one layer of Llama 3 8B and 70B (32/8 and 64/8 heads) and of GPT-3 175B (96 heads) under t
// = 1..8.
std::vector<AttentionPoint> attention_points() {
  const AttentionPoint forward[] = {
      {.heads = 32, .kv_heads = 8, .sequence = 8192, .head_size = 128},
      {.heads = 12, .kv_heads = 12, .sequence = 2048, .head_size = 128},
      {.heads = 8, .kv_heads = 1, .sequence = 8192, .head_size = 128},
      {.heads = 32, .kv_heads = 8, .sequence = 4096, .head_size = 128},
      {.heads = 16, .kv_heads = 16, .sequence = 4096, .head_size = 128, .causal = false},
      {.heads = 16, .kv_heads = 4, .sequence = 4096, .head_size = 128},
      {.heads = 4, .kv_heads = 1, .sequence = 8192, .head_size = 128},
      {.heads = 8, .kv_heads = 8, .sequence = 16384, .head_size = 128},
      {.heads = 16, .kv_heads = 16, .sequence = 1024, .head_size = 128},
      {.batch = 4, .heads = 16, .kv_heads = 16, .sequence = 2048, .head_size = 128},
      {.batch = 4, .heads = 16, .kv_heads = 16, .sequence = 2048, .head_size = 64},
      {.heads = 12, .kv_heads = 12, .sequence = 2048, .head_size = 128, .causal = false},
      {.heads = 16, .kv_heads = 16, .sequence = 8192, .head_size = 64},
      {.heads = 16, .kv_heads = 16, .sequence = 512, .head_size = 128},
      {.heads = 8, .kv_heads = 8, .sequence = 4096, .head_size = 256},
      {.heads = 4, .kv_heads = 4, .sequence = 2048, .head_size = 128},
      {.heads = 8, .kv_heads = 1, .sequence = 32768, .head_size = 128},
      {.heads = 2, .kv_heads = 1, .sequence = 8192, .head_size = 128},
      {.batch = 16, .heads = 16, .kv_heads = 16, .sequence = 512, .head_size = 64, .causal = false},
      {.heads = 16, .kv_heads = 16, .sequence = 8192, .head_size = 128, .causal = false},
      {.heads = 4, .kv_heads = 1, .sequence = 65536, .head_size = 128},
      {.heads = 8, .kv_heads = 8, .sequence = 1024, .head_size = 256},
      {.heads = 1, .kv_heads = 1, .sequence = 4096, .head_size = 128},
      {.batch = 2, .heads = 32, .kv_heads = 8, .sequence = 4096, .head_size = 128},
      {.batch = 4, .heads = 32, .kv_heads = 8, .sequence = 2048, .head_size = 128},
      {.batch = 8, .heads = 32, .kv_heads = 8, .sequence = 1024, .head_size = 128},
      {.batch = 16, .heads = 16, .kv_heads = 16, .sequence = 512, .head_size = 128},
      {.batch = 4, .heads = 16, .kv_heads = 16, .sequence = 2048, .head_size = 128, .causal = false},
      {.batch = 8, .heads = 16, .kv_heads = 16, .sequence = 1024, .head_size = 128, .causal = false},
      {.batch = 16, .heads = 16, .kv_heads = 16, .sequence = 512, .head_size = 128, .causal = false},
  };
  std::vector<AttentionPoint> points;
  for (AttentionPoint shape : forward) {
    points.push_back(shape);
    shape.backward = true;
    points.push_back(shape);
  }
  return points;
}

std::string complete_attention_point(Sample& sample) {
  if (sample.op != "flash_forward" && sample.op != "flash_backward") return "no such operator: " + sample.op;
  for (const char* name : {"heads", "sequence", "head_size"})
    if (!sample.shape.contains(name)) return sample.op + " needs the extent " + name;
  sample.shape.try_emplace("batch", 1);
  sample.shape.try_emplace("kv_heads", sample.shape.at("heads"));
  sample.tags.try_emplace("causal", "true");
  for (const auto& [name, extent] : sample.shape)
    if (extent <= 0) return name + " = " + std::to_string(extent) + " is not positive";
  const AttentionPoint shape = attention_shape(sample);
  if (shape.heads % shape.kv_heads != 0) return "kv_heads does not divide heads";
  if (shape.head_size % 8 != 0 || shape.head_size > 256)
    return "head_size must be a multiple of 8, 256 at most";
  const Sample full = attention_sample(shape);
  if (full.shape.size() != sample.shape.size()) return sample.op + " has extents that it does not know";
  for (const auto& [name, value] : full.tags)
    if (sample.tags.try_emplace(name, value).first->second != value)
      return "tag " + name + " is not measured here";
  if (full.tags.size() != sample.tags.size()) return sample.op + " has tags that it does not know";
  sample.flops = full.flops;
  sample.bytes = full.bytes;
  return {};
}

}  // namespace stagecraft
