// What time is spent on: the parts of `breakdown_s` (contract section 3.1).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

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

}  // namespace stagecraft
