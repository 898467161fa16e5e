// What time is spent on: the parts of `breakdown_s` (docs/reports.md, "Keys of `run --json`").
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

// What the layers of a pass exchange.
inline constexpr std::array kInPass = {Category::kTensorComm, Category::kContextComm, Category::kExpertComm};

// The name of the tasks without a length that stand where all ranks have ended an iteration, where several
// are simulated; their micro-batch is the number of the iteration.
inline constexpr std::string_view kEndOfIteration = "end of iteration";

}  // namespace stagecraft
