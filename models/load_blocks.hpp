// Reads the optional blocks of a `model:` mapping: experts, sliding windows and latent attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/yaml.hpp"
#include "models/model_spec.hpp"

namespace stagecraft {

// Far above any model, and low enough that a product of two does not overflow; load_model checks larger
// products.
inline constexpr std::int64_t kMaxCount = 1'000'000'000;
inline constexpr std::int64_t kMaxLayers = 1'000'000;  // lists of layers stay short

// A whole number from 1 to kMaxCount.
[[nodiscard]] std::int64_t read_count(YamlMap& map, std::string_view key,
                                      std::optional<std::int64_t> fallback = {});

// The same for a number that most users leave to us: the fallback is said in a warning with its reason.
[[nodiscard]] std::int64_t assumed_count(YamlMap& map, std::string_view key, std::int64_t fallback,
                                         std::string_view why);

// The mapping `experts` of `model`; nullopt when it is absent. Without shared experts their width is 0.
//   layers  of the model, kMaxLayers where that is not known.
//   width   of the model's MLP, which experts have unless they say another; nullopt where it is not known.
[[nodiscard]] std::optional<ExpertsSpec> load_experts(YamlMap& model, std::int64_t layers,
                                                      std::optional<std::int64_t> width);

// The mapping `sliding_window` of `model`; nullopt when it is absent.
[[nodiscard]] std::optional<SlidingWindowSpec> load_sliding_window(YamlMap& model, std::int64_t layers);

// The mapping `latent_attention` of `model`; nullopt when it is absent.
[[nodiscard]] std::optional<LatentAttentionSpec> load_latent_attention(YamlMap& model);

}  // namespace stagecraft
