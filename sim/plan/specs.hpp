// What a scenario asks of a training job: plain values, every default filled in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/shard.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

struct ParallelSpec {
  int tensor = 1;
  int pipeline = 1;
  std::optional<int> data = {};                 // absent: what the GPUs leave
  int virtual_stages = 1;                       // model chunks per pipeline rank
  std::vector<std::int64_t> stage_layers = {};  // layers of each global stage; empty: even split
  bool sequence_parallel = false;
  int zero_stage = 0;  // 0 | 1
  std::array<Axis, kAxisCount> order = {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData,
                                        Axis::kPipeline};

  friend bool operator==(const ParallelSpec&, const ParallelSpec&) = default;
};

struct TrainingSpec {
  std::int64_t global_batch_size = 1;  // samples of an iteration
  std::int64_t micro_batch_size = 1;   // samples
  std::int64_t sequence_length = 0;    // tokens of a sample; 0 only for abstract stages
  Precision precision = Precision::kBf16;
  Precision gradient = Precision::kFp32;  // default: fp16 training reduces fp16, all else fp32
  Recompute recompute = Recompute::kNone;
  Attention attention = Attention::kFlash;

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

struct OverlapSpec {
  bool gradients = true;   // data-parallel reduction beside the last backward
  bool parameters = true;  // ZeRO parameter gathering beside the first forward
  bool pipeline = true;    // messages beside compute; false: the sender waits for them

  friend bool operator==(const OverlapSpec&, const OverlapSpec&) = default;
};

struct OptionsSpec {
  bool scatter_gather = true;  // tensor ranks send 1/t of a pipeline message each, receivers gather
  bool fused_kernels = true;
  bool gradient_accumulation_fusion = true;

  friend bool operator==(const OptionsSpec&, const OptionsSpec&) = default;
};

struct ScheduleSpec {
  std::string name = "1f1b";
  int micro_batch_group = 0;  // of interleaving; 0 = the schedule's default

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

}  // namespace stagecraft
