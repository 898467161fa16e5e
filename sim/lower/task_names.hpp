// What tasks are called, passes and what is done beside them: lower() writes these names, and whatever reads a
// program by them asks pass_of() and beside_task(), so that nobody spells them again.
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

// A pass is called by its letter, and has a stage. Empty of all else, and of passes of other jobs.
[[nodiscard]] inline std::optional<Pass> pass_of(const Label& label) {
  if (label.stage < 0 || label.name.size() != 1) return std::nullopt;
  return pass_of(label.name.front());
}

// To people: "weight gradient".
[[nodiscard]] constexpr std::string_view word_of(Pass pass) {
  constexpr std::array<std::string_view, kPassCount> kWords = {"forward", "backward", "input gradient",
                                                               "weight gradient", "recompute"};
  return kWords.at(static_cast<std::size_t>(pass));
}

enum class BesideTask : std::uint8_t {
  kSendForward,
  kSendBackward,
  kSendNorm,  // one number to the next pipeline rank, where a step is validated afterwards
  kParameterGather,
  kGradientReduction,
  kGradientReplication,  // over the replicas of a shard, behind its reduction
  kCopySum,              // of the gradients of both copies of a stage
  kEmbeddingSum,         // of tied embeddings
  kGradientNorm,
  kPartialNorm,  // over the ranks of one pipeline rank
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

// Empty of passes, of tasks without a length, and of tasks of other jobs.
[[nodiscard]] constexpr std::optional<BesideTask> beside_task(std::string_view name) {
  const auto* const at = std::ranges::find(kBesideTaskNames, name);
  if (at == kBesideTaskNames.end()) return std::nullopt;
  return static_cast<BesideTask>(at - kBesideTaskNames.begin());
}

}  // namespace stagecraft
