// The attention points of the default suite.
//
// Heads are what tensor parallelism leaves on a GPU. FLOPs are those that count: 4 b a s^2 q forward, half of
// it under a causal mask, 2.5 times as much backward. Bytes as in docs/op-inventory.md: Q, K, V, O (and their
// gradients), and the log-sum-exp in fp32.
//   source   Dao, arXiv 2307.08691, section 4.1, for the counting of FLOPs.
#pragma once

#include <string>
#include <vector>

#include "calibrate/samples/sample.hpp"

namespace stagecraft {

struct AttentionPoint {
  std::int64_t batch = 1, heads = 0, kv_heads = 0, sequence = 0, head_size = 0;
  bool causal = true, backward = false;
};

[[nodiscard]] Sample attention_sample(const AttentionPoint& shape);
[[nodiscard]] AttentionPoint attention_shape(const Sample& sample);
[[nodiscard]] std::vector<AttentionPoint> attention_points();  // most valuable first

// Empty, or why the point cannot be measured. Fills in the missing tags and extents, FLOPs and bytes.
[[nodiscard]] std::string complete_attention_point(Sample& sample);

}  // namespace stagecraft
