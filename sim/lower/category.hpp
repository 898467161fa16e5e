// Categories of time: the parts of `breakdown_s` (docs/reports.md, "Keys of `run --json`").
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/units.hpp"

namespace stagecraft {

enum class Category : std::int32_t {
  kForward,
  kBackward,
  kRecompute,
  kTensorComm,
  kContextComm,
  kExpertComm,
  kPipelineComm,
  kDataComm,
  kOptimizer,
  kBubble,
  kOther,
};

inline constexpr std::array<std::string_view, 11> kCategoryNames = {
    "forward",       "backward",  "recompute", "tensor_comm", "context_comm", "expert_comm",
    "pipeline_comm", "data_comm", "optimizer", "bubble",      "other"};
inline constexpr std::size_t kCategoryCount = kCategoryNames.size();

using Breakdown = std::array<Duration, kCategoryCount>;  // time by category

// Categories of communication inside the layers of a pass.
inline constexpr std::array kInPass = {Category::kTensorComm, Category::kContextComm, Category::kExpertComm};

// Name of the zero-length tasks that mark the end of an iteration on all ranks, where several iterations are
// simulated. Their micro-batch is the number of the iteration.
inline constexpr std::string_view kEndOfIteration = "end of iteration";

}  // namespace stagecraft
