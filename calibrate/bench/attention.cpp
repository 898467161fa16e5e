// The family of fused attention: points, and the check of sampled rows against float64.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "calibrate/bench/attention_shapes.hpp"
#include "calibrate/bench/sustained.hpp"

#if __has_include(<cudnn.h>) && !defined(STAGECRAFT_NO_CUDNN)
#include "calibrate/bench/attention_cudnn.hpp"
#include "calibrate/bench/kernels_bench.hpp"

namespace stagecraft {
namespace {

using reference::BoundedRow;
using reference::Precision;
using reference::Row;
using Rows64 = std::vector<Row>;

// The flash kernels round the weights of the values to bf16 and then the result; the backward ones round P
// and dS and then the result. One more for the fast exponential of scores that are themselves sums in fp32.
constexpr Precision kPrecision{.unit = 0x1p-8, .roundings = 3, .tiny = 1e-6};

// One (sample, head) of tensors [batch, sequence, heads, size], on the host.
class Slice {
 public:
  Slice(const Harness& harness, const AttentionPoint& shape, std::int64_t sample)
      : harness_(harness), shape_(shape), sample_(sample) {}

  // Rows [first, last) of the sequence.
  [[nodiscard]] Rows64 rows(const __nv_bfloat16* data, std::int64_t heads, std::int64_t head,
                            std::int64_t first, std::int64_t last) const {
    const std::int64_t size = shape_.head_size;
    std::vector<std::int64_t> indices;
    for (std::int64_t s = first; s < last; ++s)
      for (std::int64_t i = 0; i < size; ++i)
        indices.push_back(((sample_ * shape_.sequence + s) * heads + head) * size + i);
    const std::vector<double> flat = harness_.read(data, Dtype::kBf16, indices);
    Rows64 rows;
    for (auto at = flat.begin(); at != flat.end(); at += size) rows.emplace_back(at, at + size);
    return rows;
  }
  [[nodiscard]] Row statistics(const float* data, std::int64_t head, std::int64_t first,
                               std::int64_t last) const {
    const std::int64_t start = (sample_ * shape_.heads + head) * shape_.sequence;
    return harness_.read_all(data + start + first, Dtype::kFp32, last - first);
  }

 private:
  const Harness& harness_;
  AttentionPoint shape_;
  std::int64_t sample_;
};

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Sampled {
  std::int64_t sample, head, kv_head;
  std::vector<std::int64_t> queries;
};
// The first and last head, and queries at both ends and between; fewer where the sequence is long.
std::vector<Sampled> sampled_heads(const AttentionPoint& s) {
  const std::int64_t group = s.heads / s.kv_heads, last = s.heads - 1;
  const std::vector<std::int64_t> queries = Bench::sampled(s.sequence, s.sequence > 8192 ? 3 : 6);
  std::vector<Sampled> heads = {{s.batch - 1, last, last / group, queries}};
  if (s.sequence <= 8192 && last > 0) heads.push_back({0, 0, 0, queries});
  return heads;
}

double forward_error(const Harness& harness, const AttentionPoint& shape, const AttentionOperands& io) {
  double worst = 0;
  for (const Sampled& at : sampled_heads(shape)) {
    const Slice slice(harness, shape, at.sample);
    const Rows64 keys = slice.rows(io.k, shape.kv_heads, at.kv_head, 0, shape.sequence);
    const Rows64 values = slice.rows(io.v, shape.kv_heads, at.kv_head, 0, shape.sequence);
    for (const std::int64_t q : at.queries) {
      const auto seen = static_cast<std::size_t>(shape.causal ? q + 1 : shape.sequence);
      const Row query = slice.rows(io.q, shape.heads, at.head, q, q + 1)[0];
      const BoundedRow wanted = reference::attention(
          {query, std::span(keys).first(seen), std::span(values).first(seen), attention_scale(shape)});
      const Row got = slice.rows(io.o, shape.heads, at.head, q, q + 1)[0];
      worst = std::max(worst, reference::worst(got, wanted, kPrecision));
    }
  }
  return worst;
}

// dQ of sampled queries. Weights come from the log-sum-exp that the forward pass left, which its own check
// covers.
double query_gradient_error(const Harness& harness, const AttentionPoint& shape,
                            const AttentionOperands& io) {
  const double scale = attention_scale(shape);
  double worst = 0;
  for (const Sampled& at : sampled_heads(shape)) {
    const Slice slice(harness, shape, at.sample);
    const Rows64 keys = slice.rows(io.k, shape.kv_heads, at.kv_head, 0, shape.sequence);
    const Rows64 values = slice.rows(io.v, shape.kv_heads, at.kv_head, 0, shape.sequence);
    for (const std::int64_t q : at.queries) {
      const Row query = slice.rows(io.q, shape.heads, at.head, q, q + 1)[0];
      const Row d_o = slice.rows(io.d_o, shape.heads, at.head, q, q + 1)[0];
      const double row_sum = dot(d_o, slice.rows(io.o, shape.heads, at.head, q, q + 1)[0]);
      const double log_sum = slice.statistics(io.statistics, at.head, q, q + 1)[0];
      BoundedRow wanted(query.size());
      const auto seen = static_cast<std::size_t>(shape.causal ? q + 1 : shape.sequence);
      for (std::size_t j = 0; j < seen; ++j) {
        const double share = std::exp(scale * dot(query, keys[j]) - log_sum), slope = dot(d_o, values[j]);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          wanted[i].value += scale * share * (slope - row_sum) * keys[j][i];
          wanted[i].magnitude += scale * share * (std::abs(slope) + std::abs(row_sum)) * std::abs(keys[j][i]);
        }
      }
      const Row got = slice.rows(io.dq, shape.heads, at.head, q, q + 1)[0];
      worst = std::max(worst, reference::worst(got, wanted, kPrecision));
    }
  }
  return worst;
}

// dK and dV of one key: sums over the queries that see it, of all heads that share it.
double key_gradient_error(const Harness& harness, const AttentionPoint& shape, const AttentionOperands& io,
                          std::int64_t key) {
  const double scale = attention_scale(shape);
  const std::int64_t group = shape.heads / shape.kv_heads, kv_head = shape.kv_heads - 1;
  const std::int64_t first = shape.causal ? key : 0, last = shape.sequence;
  const Slice slice(harness, shape, shape.batch - 1);
  const Row k = slice.rows(io.k, shape.kv_heads, kv_head, key, key + 1)[0];
  const Row v = slice.rows(io.v, shape.kv_heads, kv_head, key, key + 1)[0];
  BoundedRow dk(k.size()), dv(k.size());
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const Rows64 q = slice.rows(io.q, shape.heads, head, first, last);
    const Rows64 o = slice.rows(io.o, shape.heads, head, first, last);
    const Rows64 d_o = slice.rows(io.d_o, shape.heads, head, first, last);
    const Row log_sum = slice.statistics(io.statistics, head, first, last);
    for (std::size_t i = 0; i < q.size(); ++i) {
      const double share = std::exp(scale * dot(q[i], k) - log_sum[i]);
      const double slope = dot(d_o[i], v), row_sum = dot(d_o[i], o[i]);
      for (std::size_t e = 0; e < k.size(); ++e) {
        dv[e].value += share * d_o[i][e];
        dv[e].magnitude += share * std::abs(d_o[i][e]);
        dk[e].value += scale * share * (slope - row_sum) * q[i][e];
        dk[e].magnitude += scale * share * (std::abs(slope) + std::abs(row_sum)) * std::abs(q[i][e]);
      }
    }
  }
  const Row got_k = slice.rows(io.dk, shape.kv_heads, kv_head, key, key + 1)[0];
  const Row got_v = slice.rows(io.dv, shape.kv_heads, kv_head, key, key + 1)[0];
  return std::max(reference::worst(got_k, dk, kPrecision), reference::worst(got_v, dv, kPrecision));
}

double backward_error(const Harness& harness, const AttentionPoint& shape, const AttentionOperands& io) {
  double worst = query_gradient_error(harness, shape, io);
  // Late keys of long sequences are checked only under a mask: few queries see them, and the host has to sum
  // over those.
  if (shape.causal || shape.sequence <= 8192)
    for (const std::int64_t back : {std::int64_t{1}, std::int64_t{130}})
      worst = std::max(worst, key_gradient_error(harness, shape, io, shape.sequence - back));
  if (shape.sequence <= 4096) worst = std::max(worst, key_gradient_error(harness, shape, io, 0));
  return worst;
}

// One pass on its operands, checked. A backward pass has its forward pass run and checked before it.
class AttentionRun {
 public:
  AttentionRun(Harness& harness, const AttentionPoint& shape) : shape_(shape), bench_(harness) {
    const std::int64_t queries = shape.batch * shape.sequence * shape.heads * shape.head_size;
    const std::int64_t keys = shape.batch * shape.sequence * shape.kv_heads * shape.head_size;
    io_ = {.q = bench_.random(queries),
           .k = bench_.random(keys),
           .v = bench_.random(keys),
           .o = bench_.room<__nv_bfloat16>(queries),
           .statistics = bench_.room<float>(shape.batch * shape.sequence * shape.heads)};
    AttentionPoint ahead = shape;
    ahead.backward = false;
    forward_.emplace(harness, ahead, io_);
    bench_.run([&](cudaStream_t s) { forward_->enqueue(s); });
    error_ = Harness::require_correct("flash_forward", forward_error(harness, shape, io_));
    if (!shape.backward) return;
    io_.d_o = bench_.random(queries);
    io_.dq = bench_.room<__nv_bfloat16>(queries);
    io_.dk = bench_.room<__nv_bfloat16>(keys);
    io_.dv = bench_.room<__nv_bfloat16>(keys);
    backward_.emplace(harness, shape, io_);
    bench_.run([&](cudaStream_t s) { backward_->enqueue(s); });
    error_ = Harness::require_correct("flash_backward", backward_error(harness, shape, io_));
  }

  void enqueue(cudaStream_t stream) const { (backward_ ? *backward_ : *forward_).enqueue(stream); }
  [[nodiscard]] double error() const { return error_; }  // of the pass that is asked for
  [[nodiscard]] Measured time() {
    const char* const name = shape_.backward ? "flash_backward" : "flash_forward";
    return bench_.finish(
        name, error_, [&](cudaStream_t s) { enqueue(s); }, shape_.backward ? 5 : 2);
  }

 private:
  AttentionPoint shape_;
  Bench bench_;
  AttentionOperands io_;
  std::optional<CudnnAttention> forward_, backward_;
  double error_ = 0;
};

Measured measure(Harness& harness, const AttentionPoint& shape) {
  return AttentionRun(harness, shape).time();
}

WorkItem item_of(const Sample& sample, double value, const Device& device) {
  const double rate = device.dense_flops_per_s > 0 ? device.dense_flops_per_s : 1e14;
  WorkItem item{.prototype = sample, .value = value};
  // Plans take a while to find; then forty repeats at about half the peak, and a check that reads whole
  // heads.
  item.estimated_seconds =
      0.5 + 80 * sample.flops / rate + 2e-5 * static_cast<double>(sample.shape.at("sequence"));
  item.run = [sample](Harness& harness) { return measure(harness, attention_shape(sample)); };
  return item;
}

}  // namespace

std::vector<SustainedRun> sustained_attention(Harness& harness, std::int64_t tokens) {
  std::vector<SustainedRun> runs;
  for (const bool backward : {false, true}) {
    const AttentionPoint shape{
        .heads = 32, .kv_heads = 8, .sequence = tokens, .head_size = 128, .backward = backward};
    const auto run = std::make_shared<AttentionRun>(harness, shape);
    runs.push_back({.prototype = attention_sample(shape),
                    .enqueue = [run](cudaStream_t s) { run->enqueue(s); },
                    .max_error = run->error()});
  }
  return runs;
}

std::vector<WorkItem> attention_items(const Device& device) {
  std::vector<WorkItem> items;
  int place = 0;
  for (const AttentionPoint& shape : attention_points()) {
    const int pair = place++ / 2;  // a forward and its backward
    items.push_back(item_of(attention_sample(shape), 80.0 / (1.0 + 0.5 * pair), device));
  }
  return items;
}

std::optional<WorkItem> attention_item_for(const Sample& wanted, const Device& device) {
  Sample sample = wanted;
  if (sample.family != "attention" || !complete_attention_point(sample).empty()) return std::nullopt;
  return item_of(sample, 100, device);
}

}  // namespace stagecraft

#else

namespace stagecraft {

std::vector<SustainedRun> sustained_attention(Harness&, std::int64_t) {
  return {};
}
std::vector<WorkItem> attention_items(const Device&) {
  return {};
}
std::optional<WorkItem> attention_item_for(const Sample&, const Device&) {
  return std::nullopt;
}

}  // namespace stagecraft

#endif
