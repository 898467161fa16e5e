// Which matrix products are worth measuring, and what each is worth.
//
// The order follows the share of a training step's error that hangs on each: feed-forward products of real
// models in all three passes first, then attention projections, the row counts that tensor-parallel overlap
// leaves, shapes at the edges of a wave of thread blocks, the output layer, and a coarse grid that a fit can
// interpolate in. The long tail (finer grid, other types, other degrees of tensor parallelism) comes after
// what matters of the other families.
#include <algorithm>
#include <cmath>

#include "calibrate/bench/gemm.hpp"

namespace stagecraft {
namespace {

// Widths of published models.
//   source   Brown et al. (arXiv 2005.14165), table 2.1; Grattafiori et al. (arXiv 2407.21783), table 3. The
//            vocabulary of GPT-3 is padded as Megatron-LM does (51200).
struct Model {
  std::int64_t hidden, ffn, heads, kv_heads, head_size, vocabulary;
  bool gated;        // SwiGLU: the first product makes two halves
  int usual_tensor;  // tensor-parallel degree that it is trained with
};
constexpr Model kModels[] = {
    {4096, 14336, 32, 8, 128, 128256, true, 1},
    {8192, 28672, 64, 8, 128, 128256, true, 4},
    {16384, 53248, 128, 8, 128, 128256, true, 8},
    {12288, 49152, 96, 96, 128, 51200, false, 8},
};

// One weight[out, in] of a layer, as one of t ranks holds it.
struct Weight {
  std::int64_t out, in;
  double share;  // of the value
};

std::vector<Weight> layer_weights(const Model& model, int tensor) {
  const std::int64_t t = tensor, heads = model.heads * model.head_size / t;
  const std::int64_t kv = std::max<std::int64_t>(model.kv_heads / t, 1) * model.head_size;
  const std::int64_t ffn = model.ffn / t;
  return {{(model.gated ? 2 : 1) * ffn, model.hidden, 1.0},
          {model.hidden, ffn, 0.98},
          {heads + 2 * kv, model.hidden, 0.9},
          {model.hidden, heads, 0.88}};
}

// The three passes of a weight on T tokens.
std::vector<GemmPoint> passes(const Weight& weight, std::int64_t tokens) {
  return {{.m = tokens, .n = weight.out, .k = weight.in, .layout = GemmLayout::kTN},
          {.m = tokens, .n = weight.in, .k = weight.out, .layout = GemmLayout::kNN},
          {.m = weight.out, .n = weight.in, .k = tokens, .layout = GemmLayout::kNT, .accumulate = true}};
}

class Plan {
 public:
  explicit Plan(const Device& device) : device_(device) {}

  void add(const GemmPoint& point, double value) {
    WorkItem item;
    item.prototype = gemm_prototype(point);
    item.value = value;
    // Set-up and check, then about fifty executions with rests of twice their length, within the stop rule's
    // limit.
    const double one = gemm_seconds_guess(point, device_) + 40e-6;
    item.estimated_seconds = 0.05 + item.prototype.bytes / 200e9 + std::min(3 * 50 * one, 0.75 + 3 * one);
    item.run = [point](Harness& harness) {
      GemmRun run(harness, point);
      const double error = run.check(harness);
      Measured measured =
          harness.time([&](cudaStream_t stream) { run.enqueue(stream); },
                       {.l2 = point.hot ? L2::kHot : L2::kCold, .launches = 2 * point.chunks});
      measured.max_error = error;
      measured.observed["algo"] = run.algorithm();
      return measured;
    };
    items_.push_back(std::move(item));
  }
  std::vector<WorkItem> take() && { return std::move(items_); }

 private:
  Device device_;
  std::vector<WorkItem> items_;
};

double value_of_tokens(std::int64_t tokens) {
  return tokens == 4096 ? 1.0 : tokens == 2048 ? 0.97 : tokens == 8192 ? 0.95 : 0.8;
}

void add_model_layers(Plan& plan) {
  for (const Model& model : kModels)
    for (const int tensor : {1, 2, 4, 8}) {
      if (!model.gated && tensor < 4) continue;  // 175 billion weights are never held by so few
      const double fit = tensor == model.usual_tensor ? 1 : 0.22;
      for (const Weight& weight : layer_weights(model, tensor))
        for (const std::int64_t tokens : {1024, 2048, 4096, 8192})
          for (const GemmPoint& point : passes(weight, tokens))
            plan.add(point, 90 * fit * weight.share * value_of_tokens(tokens));
    }
}

// The rows that overlap of tensor-parallel traffic leaves, one by one and as the chain of calls that takes
// their place.
void add_chunks(Plan& plan) {
  for (const Model& model : kModels) {
    const int chunks = std::max(model.usual_tensor, 2);
    for (const Weight& weight : layer_weights(model, model.usual_tensor)) {
      for (GemmPoint point : passes(weight, 4096)) {
        if (point.layout == GemmLayout::kNT) continue;
        point.chunks = chunks;
        plan.add(point, 72 * weight.share);
      }
      for (const std::int64_t tokens : {256, 512})
        for (const GemmPoint& point : passes(weight, tokens)) plan.add(point, 60 * weight.share);
    }
  }
}

// Weight gradients into bf16, and the same products with L2 as the last execution left it.
void add_variants(Plan& plan) {
  for (const Model& model : kModels)
    for (const Weight& weight : layer_weights(model, model.usual_tensor)) {
      GemmPoint point = passes(weight, 4096)[2];
      point.accumulate = false;
      plan.add(point, 20 * weight.share);
      point = passes(weight, 4096)[0];
      point.hot = true;
      plan.add(point, 5 * weight.share);
    }
}

void add_output_layers(Plan& plan) {
  for (const Model& model : kModels) {
    const Weight head{model.vocabulary / model.usual_tensor, model.hidden, 1};
    for (const std::int64_t tokens : {2048, 4096})
      for (const GemmPoint& point : passes(head, tokens)) plan.add(point, 65 * value_of_tokens(tokens));
  }
}

// Tiles of 128x256 that fill 0.9, 1.05, ... waves: what a product loses to its last wave.
void add_wave_edges(Plan& plan, const Device& device) {
  for (const double waves : {0.9, 1.05, 1.9, 2.1, 5.9, 6.1})
    for (const std::int64_t columns : {1024, 2048}) {
      const auto tiles_down =
          static_cast<std::int64_t>(std::lround(waves * device.sms * 256 / static_cast<double>(columns)));
      for (const std::int64_t k : {1024, 4096})
        plan.add({.m = 128 * std::max<std::int64_t>(tiles_down, 1), .n = columns, .k = k}, 62);
    }
}

// A grid for the fit, and the thin products of few tokens.
void add_grid(Plan& plan) {
  constexpr std::int64_t kExtents[] = {128, 256, 512, 1024, 2048, 4096, 8192};
  for (const std::int64_t m : kExtents)
    for (const std::int64_t n : kExtents)
      for (const std::int64_t k : kExtents) {
        const bool coarse = m != 128 && m != 512 && m != 2048 && n != 128 && n != 512 && n != 2048 &&
                            k != 128 && k != 512 &&
                            k != 2048;  // the powers of four times 256 and 8192: first a wide net
        plan.add({.m = m, .n = n, .k = k}, coarse ? 58 : 4);
      }
  for (const std::int64_t m : {1, 16, 64})
    for (const Weight& weight : layer_weights(kModels[0], 1))
      plan.add({.m = m, .n = weight.out, .k = weight.in}, 7);
}

// fp8 in the three passes (the backward ones take their gradient in e5m2; every operand was transposed to TN
// before).
std::vector<GemmPoint> fp8_passes(const Weight& weight, std::int64_t tokens) {
  return {{.m = tokens, .n = weight.out, .k = weight.in, .dtype = "e4m3"},
          {.m = tokens, .n = weight.in, .k = weight.out, .dtype = "e5m2"},
          {.m = weight.out, .n = weight.in, .k = tokens, .dtype = "e5m2", .accumulate = true}};
}

void add_other_types(Plan& plan) {
  for (const Model& model : kModels)
    for (const Weight& weight : layer_weights(model, model.usual_tensor)) {
      for (const std::int64_t tokens : {2048, 4096, 8192})
        for (const GemmPoint& point : fp8_passes(weight, tokens))
          plan.add(point, 64 * weight.share * value_of_tokens(tokens));
      for (GemmPoint point : passes(weight, 4096)) {
        point.dtype = "fp16";
        plan.add(point, 5 * weight.share);
        point.dtype = "tf32";
        point.accumulate = false;
        plan.add(point, 4 * weight.share);
      }
    }
  for (const std::int64_t m : {256, 1024, 4096, 8192})
    for (const std::int64_t n : {256, 1024, 4096, 8192})
      for (const std::int64_t k : {256, 1024, 4096, 8192}) {
        plan.add({.m = m, .n = n, .k = k, .dtype = "e4m3"}, 8);
        plan.add({.m = m, .n = n, .k = k, .dtype = "tf32"}, 3);
      }
}

// Attention as of 2021, one product a head: scores, context and their four gradients.
void add_attention_products(Plan& plan) {
  constexpr std::int64_t kHeadSize = 128;
  for (const std::int64_t heads : {8, 12, 32})
    for (const std::int64_t s : {1024, 2048, 4096}) {
      const double value = s == 2048 ? 15 : 12;
      plan.add({.m = s, .n = s, .k = kHeadSize, .batch = heads, .layout = GemmLayout::kTN}, value);
      plan.add({.m = s, .n = kHeadSize, .k = s, .batch = heads, .layout = GemmLayout::kNN}, value);
      plan.add({.m = s, .n = kHeadSize, .k = s, .batch = heads, .layout = GemmLayout::kNT}, value - 1);
    }
}

// Local experts, each with as many tokens, as one strided batch.
//   source   Jiang et al. (arXiv 2401.04088), table 1: h 4096, f 14336, 8 experts; DeepSeek-AI (arXiv
//            2412.19437), section 4.2: h 7168, f 2048, 256 experts, here 32 on a GPU.
void add_experts(Plan& plan) {
  struct Experts {
    std::int64_t hidden, ffn, local;
  };
  for (const Experts e : {Experts{4096, 14336, 8}, Experts{7168, 2048, 32}})
    for (const std::int64_t tokens : {128, 512, 2048})
      for (const Weight& weight : {Weight{2 * e.ffn, e.hidden, 1.0}, Weight{e.hidden, e.ffn, 0.95}})
        for (GemmPoint point : passes(weight, tokens)) {
          point.batch = e.local;
          point.grouped = true;
          plan.add(point, 52 * weight.share);
        }
}

}  // namespace

std::vector<WorkItem> gemm_items(const Device& device) {
  Plan plan(device);
  add_model_layers(plan);
  add_chunks(plan);
  add_variants(plan);
  add_output_layers(plan);
  add_wave_edges(plan, device);
  add_grid(plan);
  add_other_types(plan);
  add_attention_products(plan);
  add_experts(plan);
  return std::move(plan).take();
}

std::optional<WorkItem> gemm_item_for(const Sample& wanted, const Device& device) {
  const auto point = gemm_point_of(wanted);
  if (!point) return {};
  Plan plan(device);
  plan.add(*point, 1);
  return std::move(plan).take().front();
}

}  // namespace stagecraft
