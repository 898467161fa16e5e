// The two small languages inside options of Megatron-LM, bounded in depth and size.
//
//   layer pattern   --moe-layer-freq: an integer n (layer i, from 0, has experts where n divides i), or a
//                   Python list expression of integers, lists, parentheses, + and *: [0]*3+[1]*58
//   window pattern  --window-attn-skip-freq: an integer n (layer i, from 1, attends to all tokens where n divides
//                   i), or such a list, of 0 for these layers
//   layout          --pipeline-model-parallel-layout: stages between bars, of E embedding, t transformer
//                   layer, m layer of multi-token prediction, L loss; x*n and (…)*n repeat; commas mean
//                   nothing: E|(t|)*3,m|m||L
//
//   source  NVIDIA/Megatron-LM @000c4ac megatron/training/arguments.py, moe_freq_type and the options' help.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

inline constexpr std::int64_t kMaxPatternLayers = 100'000;

// One entry a layer, true where it has experts. nullopt with a reason in `mistake`: not of this grammar,
// another number of entries than layers, an entry that is neither 0 nor 1.
[[nodiscard]] std::optional<std::vector<bool>> read_layer_pattern(std::string_view text, std::int64_t layers,
                                                                  std::string& mistake);

// The same, true where the layer has the window.
[[nodiscard]] std::optional<std::vector<bool>> read_window_pattern(std::string_view text, std::int64_t layers,
                                                                   std::string& mistake);

struct LayoutStage {
  bool embedding = false;
  std::int64_t layers = 0;
  std::int64_t mtp_layers = 0;
  bool loss = false;

  friend bool operator==(const LayoutStage&, const LayoutStage&) = default;
};

// The stages in model order.
[[nodiscard]] std::optional<std::vector<LayoutStage>> read_pipeline_layout(std::string_view text,
                                                                           std::string& mistake);

}  // namespace stagecraft
