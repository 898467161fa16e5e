// Memory-bound kernels that move rows: transpositions, tokens to experts and back, the embedding.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_point.hpp"
#include "calibrate/bench/kernels_unfused.hpp"

namespace stagecraft {
namespace {

using reference::Bounded;
using reference::BoundedRow;
using reference::Row;

// Moves copy bits: any difference is an error.
double moved(const Row& got, const Row& wanted) {
  return got == wanted ? 0 : std::numeric_limits<double>::infinity();
}

Measured transpose_point(KernelPoint& at, bool heads) {
  Bench& b = at.bench;
  const std::int64_t tokens = at.extent("tokens"), count = heads ? at.extent("heads") : at.extent("hidden");
  const std::int64_t size = heads ? at.extent("head_size") : 1, n = tokens * count * size;
  const Bf16* from = b.random(n);
  Bf16* to = b.room<Bf16>(n);
  const Enqueue op = [&](cudaStream_t s) {
    if (heads) return transpose_heads(from, to, {tokens, count, size}, s);
    transpose(from, to, {tokens, count}, s);
  };
  b.run(op);
  const auto sampled = Bench::sampled(n, 65536);
  std::vector<std::int64_t> source;
  for (const std::int64_t i : sampled)  // to[c][t][e] = from[t][c][e]
    source.push_back(((i / size % tokens) * count + i / size / tokens) * size + i % size);
  const Row got = b.harness().read(to, Dtype::kBf16, sampled),
            wanted = b.harness().read(from, Dtype::kBf16, source);
  return at.finish(moved(got, wanted), op);
}

// A random permutation: where each of the tokens * k copies lies among the expert rows.
std::vector<std::int32_t> random_slots(std::int64_t copies) {
  std::vector<std::int32_t> slots(static_cast<std::size_t>(copies));
  std::iota(slots.begin(), slots.end(), 0);
  std::mt19937 generator(13);
  for (std::size_t i = slots.size(); i > 1; --i) std::swap(slots[i - 1], slots[generator() % i]);
  return slots;
}

// Copies of a token's rows, forward (permute_forward) or added up (the others that end in tokens).
Measured scatter_point(KernelPoint& at) {
  const Rows rows = at.rows();
  const auto k = static_cast<int>(at.extent("topk"));
  Bench& b = at.bench;
  const auto slots = random_slots(rows.tokens * k);
  const Routing routing{b.upload(slots), nullptr, k};
  const Bf16* tokens = b.random(rows.elements());
  Bf16* expert_rows = b.room<Bf16>(rows.elements() * k);
  const Enqueue op = [&](cudaStream_t s) { permute(tokens, expert_rows, routing, rows, s); };
  b.run(op);
  const double worst = worst_of(Bench::sampled(rows.tokens * k, 16), [&](std::int64_t copy) {
    return moved(b.row(expert_rows, slots[static_cast<std::size_t>(copy)], rows.hidden),
                 b.row(tokens, copy / k, rows.hidden));
  });
  return at.finish(worst, op);
}

Measured gather_point(KernelPoint& at, bool weighted) {
  const Rows rows = at.rows();
  const auto k = static_cast<int>(at.extent("topk"));
  Bench& b = at.bench;
  const auto slots = random_slots(rows.tokens * k);
  const float* shares = weighted ? b.random<float>(rows.tokens * k) : nullptr;
  const Routing routing{b.upload(slots), shares, k};
  const Bf16* expert_rows = b.random(rows.elements() * k);
  Bf16* tokens = b.room<Bf16>(rows.elements());
  at.need_scratch(rows.elements() * k);
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return unpermute(expert_rows, tokens, routing, rows, s);
    unfused::unpermute(expert_rows, tokens, routing, rows, {at.scratch_data, s});
  };
  b.run(op);
  const double worst = at.worst_row(tokens, rows, at.bf16(2), [&](std::int64_t t) {
    std::vector<Row> copies;
    for (int j = 0; j < k; ++j)
      copies.push_back(b.row(expert_rows, slots[static_cast<std::size_t>(t * k + j)], rows.hidden));
    const Row share = weighted ? b.row(shares, t, k) : Row(static_cast<std::size_t>(k), 1.0);
    return reference::weighted_sum(copies, share);
  });
  return at.finish(worst, op);
}

Measured unpermute_backward_point(KernelPoint& at) {
  const Rows rows = at.rows();
  const auto k = static_cast<int>(at.extent("topk"));
  Bench& b = at.bench;
  const auto slots = random_slots(rows.tokens * k);
  const float* shares = b.random<float>(rows.tokens * k);
  const Routing routing{b.upload(slots), shares, k};
  const UnpermuteBackward io{b.random(rows.elements()), b.random(rows.elements() * k),
                             b.room<Bf16>(rows.elements() * k), b.room<float>(rows.tokens * k)};
  const Enqueue op = [&](cudaStream_t s) { unpermute_backward(io, routing, rows, s); };
  b.run(op);
  const double worst = worst_of(Bench::sampled(rows.tokens * k, 16), [&](std::int64_t copy) {
    const std::int64_t slot = slots[static_cast<std::size_t>(copy)];
    const Row dy = b.row(io.dy, copy / k, rows.hidden), row = b.row(io.expert_rows, slot, rows.hidden);
    const BoundedRow wanted = reference::weighted_sum(std::span(&dy, 1), b.row(shares, copy, 1));
    const double of_row = reference::worst(b.row(io.dexpert_rows, slot, rows.hidden), wanted, at.bf16(1));
    Bounded dot;
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dot.value += dy[i] * row[i];
      dot.magnitude += std::abs(dy[i] * row[i]);
    }
    return std::max(of_row, reference::worst(b.row(io.dprobability, copy, 1), std::span(&dot, 1),
                                             {.unit = kFp32Unit, .roundings = kColumnRoundings}));
  });
  return at.finish(worst, op);
}

constexpr std::int32_t kVocabulary = 128256;  // Llama 3

Measured embedding_forward_point(KernelPoint& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const auto ids = random_integers(rows.tokens, kVocabulary);
  const std::int32_t shard = kVocabulary / 4;
  const Bf16* table = b.random(rows.hidden * shard);
  std::vector<std::int32_t> local(ids);
  for (auto& id : local) id = id % 256 == 0 ? -1 : id % shard;  // few: zeros are cheaper than rows
  const Embedding embedding{b.upload(local), shard};
  Bf16* y = b.room<Bf16>(rows.elements());
  const Enqueue op = [&](cudaStream_t s) { embedding_forward(table, y, embedding, rows, s); };
  b.run(op);
  const double worst = worst_of(Bench::sampled(rows.tokens, 32), [&](std::int64_t t) {
    const std::int32_t id = local[static_cast<std::size_t>(t)];
    const Row got = b.row(y, t, rows.hidden);
    return moved(got, id < 0 ? Row(got.size(), 0.0) : b.row(table, id, rows.hidden));
  });
  return at.finish(worst, op);
}

// Tokens by id: the distinct ids ascending, and for each its tokens ascending.
struct SortedIds {
  std::vector<std::int32_t> ids, begin, order;
};
SortedIds sorted_ids(const std::vector<std::int32_t>& ids) {
  SortedIds sorted;
  sorted.order.resize(ids.size());
  std::iota(sorted.order.begin(), sorted.order.end(), 0);
  std::stable_sort(sorted.order.begin(), sorted.order.end(), [&ids](std::int32_t a, std::int32_t b) {
    return ids[static_cast<std::size_t>(a)] < ids[static_cast<std::size_t>(b)];
  });
  for (std::size_t i = 0; i < sorted.order.size(); ++i) {
    const std::int32_t id = ids[static_cast<std::size_t>(sorted.order[i])];
    if (!sorted.ids.empty() && sorted.ids.back() == id) continue;
    sorted.ids.push_back(id);
    sorted.begin.push_back(static_cast<std::int32_t>(i));
  }
  sorted.begin.push_back(static_cast<std::int32_t>(ids.size()));
  return sorted;
}

Measured embedding_backward_point(KernelPoint& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const std::int32_t shard = kVocabulary / 8;
  const SortedIds sorted = sorted_ids(random_integers(rows.tokens, shard));
  const Bf16* dy = b.random(rows.elements());
  float* gradient = b.random<float>(rows.hidden * shard);
  const EmbeddingBackward io{dy,
                             gradient,
                             b.upload(sorted.ids),
                             b.upload(sorted.begin),
                             b.upload(sorted.order),
                             static_cast<int>(sorted.ids.size())};
  const Enqueue op = [&](cudaStream_t s) { embedding_backward(io, rows, s); };
  std::vector<std::pair<std::int32_t, BoundedRow>> wanted;
  for (const std::int64_t i : Bench::sampled(io.distinct, 32)) {
    const auto at_id = static_cast<std::size_t>(i);
    std::vector<Row> terms = {b.row(gradient, sorted.ids[at_id], rows.hidden)};
    for (std::int32_t t = sorted.begin[at_id]; t < sorted.begin[at_id + 1]; ++t)
      terms.push_back(b.row(dy, sorted.order[static_cast<std::size_t>(t)], rows.hidden));
    wanted.emplace_back(sorted.ids[at_id], reference::weighted_sum(terms, Row(terms.size(), 1.0)));
  }
  b.run(op);
  const double worst = worst_of(wanted, [&](const auto& row) {
    return reference::worst(b.row(gradient, row.first, rows.hidden), row.second,
                            {.unit = kFp32Unit, .roundings = 16});
  });
  Measured measured = at.finish(worst, op);
  measured.bytes =
      static_cast<double>(rows.hidden * (2 * rows.tokens + 8 * io.distinct));  // repeated ids share rows
  return measured;
}

}  // namespace

std::span<const KernelRunner> move_runners() {
  static constexpr KernelRunner kRunners[] = {
      {"transpose", [](KernelPoint& at) { return transpose_point(at, false); }},
      {"head_transposition", [](KernelPoint& at) { return transpose_point(at, true); }},
      {"permute_forward", scatter_point},
      {"permute_backward", [](KernelPoint& at) { return gather_point(at, false); }},
      {"unpermute_forward", [](KernelPoint& at) { return gather_point(at, true); }},
      {"unpermute_backward", unpermute_backward_point},
      {"embedding_forward", embedding_forward_point},
      {"embedding_backward", embedding_backward_point},
  };
  return kRunners;
}

}  // namespace stagecraft
