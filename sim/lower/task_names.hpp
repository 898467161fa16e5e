// Names of tasks: passes, and the work beside them. lower() writes these names; readers of a program ask
// pass_of() and beside_task(), so the spelling is in one place.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/program/program.hpp"
#include "sim/schedule/notation.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The name of a pass is its letter, and its label has a stage. nullopt for other tasks, and for passes of
// other jobs.
[[nodiscard]] inline std::optional<Pass> pass_of(const Label& label) {
  if (label.stage < 0 || label.name.size() != 1) return std::nullopt;
  return pass_of(label.name.front());
}

// Readable name: "weight gradient".
[[nodiscard]] constexpr std::string_view word_of(Pass pass) {
  constexpr std::array<std::string_view, kPassCount> kWords = {"forward", "backward", "input gradient",
                                                               "weight gradient", "recompute"};
  return kWords.at(static_cast<std::size_t>(pass));
}

enum class BesideTask : std::uint8_t {
  kSendForward,
  kSendBackward,
  kSendNorm,  // sends one number to the next pipeline rank, where steps are validated afterwards
  kParameterGather,
  kGradientReduction,
  kGradientReplication,  // all-reduce over the replicas of a shard, after its reduction
  kCopySum,              // sum of the gradients of both copies of a stage
  kEmbeddingSum,         // all-reduce of tied embeddings
  kGradientNorm,
  kPartialNorm,  // norm over the GPUs of one pipeline rank
  kOptimizer,
  kHost,
  kRollback,
};

inline constexpr std::array<std::string_view, 13> kBesideTaskNames = {
    "send forward",       "send backward",        "send norm",          "parameter gather",
    "gradient reduction", "gradient replication", "sum of both copies", "embedding all-reduce",
    "gradient norm",      "partial norm",         "optimizer",          "host",
    "roll-back"};

[[nodiscard]] constexpr std::string_view name_of(BesideTask task) {
  return kBesideTaskNames.at(static_cast<std::size_t>(task));
}

// Nullopt for passes, for zero-length tasks, and for tasks of other jobs.
[[nodiscard]] constexpr std::optional<BesideTask> beside_task(std::string_view name) {
  const auto* const at = std::ranges::find(kBesideTaskNames, name);
  if (at == kBesideTaskNames.end()) return std::nullopt;
  return static_cast<BesideTask>(at - kBesideTaskNames.begin());
}

}  // namespace stagecraft
