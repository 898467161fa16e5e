// Placement of a pipeline's stages on ranks: the one answer for orders, plans, prices, task graphs and
// ledgers.
//
//   p ranks, v chunks a rank, p*v stages in model order. A pipeline that runs both ways has two copies of
//   the model: each rank holds one stage of either copy, and a micro-batch runs through one copy alone.
//
//   loop                stage s on rank s mod p, chunk s div p
//   V, wave             the same, but every second chunk runs back: stage s on rank p-1 - s mod p
//   both ways           p stages; copy 0 goes down (stage s on rank s), copy 1 up (stage s on rank p-1-s)
//   source  Narayanan et al. (arXiv 2104.04473) loop; Qi et al. (2401.10241) V; Liu et al. (2308.15762) wave;
//           Li and Hoefler (2107.06925) and DeepSeek-AI (2412.19437) both ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft {

// The backward of a stage runs where its forward did.
enum class Placement : std::uint8_t {
  kLoop,
  kV,              // two chunks
  kWave,           // the V repeated; an even number of chunks
  kBidirectional,  // bidirectional; micro-batches below m/2 run through copy 0, the others through copy 1
  kBidirectionalUnits,  // the same by units of p micro-batches: the first half of each unit is copy 0's
};

// A stage of one copy of the model.
struct HeldStage {
  int stage = 0;
  int copy = 0;
  friend bool operator==(const HeldStage&, const HeldStage&) = default;
};

struct StagePlaces {
  Placement placement = Placement::kLoop;
  int ranks = 1;   // p
  int chunks = 1;  // v, of one copy

  [[nodiscard]] constexpr int stages() const { return ranks * chunks; }
  [[nodiscard]] constexpr int copies() const {
    return placement == Placement::kBidirectional || placement == Placement::kBidirectionalUnits ? 2 : 1;
  }
  [[nodiscard]] constexpr int rank_of(int stage, int copy = 0) const {
    const bool back = (placement == Placement::kV || placement == Placement::kWave) && stage / ranks % 2 == 1;
    return back || copy == 1 ? ranks - 1 - stage % ranks : stage % ranks;
  }
  // The place of a stage among those that its rank holds: held_by()[chunk].
  [[nodiscard]] constexpr int chunk_of(int stage, int copy = 0) const { return stage / ranks + copy; }
  // The copy that a micro-batch of an iteration of `micro_batches` runs through.
  [[nodiscard]] constexpr int copy_of(int micro_batch, int micro_batches) const {
    if (placement == Placement::kBidirectional) return micro_batch < micro_batches / 2 ? 0 : 1;
    if (placement == Placement::kBidirectionalUnits) return micro_batch % ranks < ranks / 2 ? 0 : 1;
    return 0;
  }
  // The index in a list with one entry for each stage of each copy: copy 0 first, in model order.
  [[nodiscard]] constexpr std::size_t index_of(int stage, int copy = 0) const {
    return static_cast<std::size_t>(copy * stages() + stage);
  }
  [[nodiscard]] constexpr std::size_t count() const { return static_cast<std::size_t>(copies() * stages()); }

  // All held stages, by index_of().
  [[nodiscard]] std::vector<HeldStage> all() const {
    std::vector<HeldStage> all;
    for (int copy = 0; copy < copies(); ++copy)
      for (int stage = 0; stage < stages(); ++stage) all.push_back({.stage = stage, .copy = copy});
    return all;
  }
  // The stages of a rank, by chunk.
  [[nodiscard]] std::vector<HeldStage> held_by(int rank) const {
    std::vector<HeldStage> held;
    for (int copy = 0; copy < copies(); ++copy)
      for (int stage = 0; stage < stages(); ++stage)
        if (rank_of(stage, copy) == rank) held.push_back({.stage = stage, .copy = copy});
    return held;
  }

  friend bool operator==(const StagePlaces&, const StagePlaces&) = default;
};

}  // namespace stagecraft
