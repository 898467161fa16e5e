// The attention core: softmax(Q K^T / sqrt(q)) V on b a/t heads, unfused or flash.
//
// FLOPs are of the full square, causal or not. Grouped key/value heads are read through strides, not
// repeated.
//   source  Korthikanti et al. (arXiv 2205.05198), section 4; Dao (arXiv 2307.08691), section 4.1.
#pragma once

#include "models/operators.hpp"

namespace stagecraft {

void add_core_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_core_backward(Ops& ops, const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
