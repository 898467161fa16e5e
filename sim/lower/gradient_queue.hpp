// Gradients that Megatron-FSDP holds whole: those of the unit whose backward runs, and those behind it that were
// reduced and are not let go of yet.
//
// A unit that is through joins a queue; before, the oldest leave it until no more than its capacity wait. The
// queue is emptied when the backward pass ends. Layers are units, so are embedding and head by themselves.
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

// The queue's parameters: what the software asks for (SoftwareMemory::communication_unit), under ZeRO 3 no
// less than two mean layers; 0 where it has no queue.
[[nodiscard]] std::int64_t queue_capacity(std::span<const StageUnit> units, const Shard& shard,
                                          int zero_stage);

// What the gradients of these units, in model order, add at most to the moment when the backward of the last one
// begins: as the queue grows, the head's tensors and those of the layers behind are let go of.
[[nodiscard]] Bytes queued_gradients(const TransformerSpec& model, const Shard& shard,
                                     std::span<const StageUnit> units, std::int64_t capacity);

}  // namespace stagecraft
