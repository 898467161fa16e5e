// Unsharded gradients of Megatron-FSDP while a pass makes gradients of weights: of the unit whose backward
// runs, and of earlier units whose reduced gradients are not freed yet.
//
// A unit joins a queue when its backward is done. Before it joins, the oldest units leave until the queue is
// within its capacity. The queue is emptied when the backward pass ends. Each layer, the embedding and the
// head are one unit each.
//   source  NVIDIA/Megatron-LM megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py,
//           wait_for_previous_grad_reduce; megatron_fsdp.py, suggested_RS_queue_capacity, _root_post_backward.
#pragma once

#include <cstdint>
#include <span>

#include "base/units.hpp"
#include "models/model_spec.hpp"
#include "models/shard.hpp"
#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {

// Capacity of the queue in parameters: MemoryRules::communication_unit, under ZeRO 3 at least two mean
// layers; 0 where the software has no queue.
[[nodiscard]] std::int64_t queue_capacity(std::span<const StageUnit> units, const Shard& shard,
                                          int zero_stage);

// What the gradients of these units (in model order) add to the peak of a backward, and to that of the
// weight-gradient half of a split one: the peak with the queue less the peak without it. While the queue grows,
// the tensors of the units that have run are freed: what they kept, or in W what they held for it.
//   offloaded  share of the kept tensors that is not on the GPU
struct QueuedGradients {
  Bytes backward, weight_gradient;
};
[[nodiscard]] QueuedGradients queued_gradients(const TransformerSpec& model, const Shard& shard,
                                               std::span<const StageUnit> units, std::int64_t capacity,
                                               double offloaded = 0);

}  // namespace stagecraft
