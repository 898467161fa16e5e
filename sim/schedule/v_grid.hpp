// Time slots of the ranks of a V, at most one pass per slot: the grid of V-Half, V-Min and 1F1B-V.
//
// Rank r has chunk 0 (stage r) and chunk 1 (stage 2p-1-r). A backward takes two slots, its beginning B and
// its tail: input and weight gradient of a split one, the two halves of a whole one. A chunk's activations
// are held from F to the tail. A pass stands behind
//
//   F0, B1   what runs down the ranks: the same on the rank before
//   F1, B0   what runs up: the same on the rank behind; on the last rank F1 turns from F0, and B0 from B1
//   B        the forward of its own chunk
//   tail     its own B
//   all      its like of the micro-batch before, on its own rank
//
// where a whole backward is done with its tail, and the input gradient of a split one with B.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

enum class VPass : std::uint8_t { kF0, kF1, kB1, kB0, kTail1, kTail0, kNone };
inline constexpr std::size_t kVPasses = 6;

struct VCell {
  VPass pass = VPass::kNone;
  int micro_batch = 0;

  [[nodiscard]] bool is_empty() const { return pass == VPass::kNone; }
  [[nodiscard]] bool is_forward() const { return pass == VPass::kF0 || pass == VPass::kF1; }
  [[nodiscard]] bool is_beginning() const { return pass == VPass::kB0 || pass == VPass::kB1; }
  [[nodiscard]] bool is_tail() const { return pass == VPass::kTail0 || pass == VPass::kTail1; }
};

class VGrid {
 public:
  enum class Backward : std::uint8_t { kWhole, kSplit };
  using Row = std::vector<VCell>;           // [slot]
  static constexpr int kPeriod = kVPasses;  // slots per micro-batch on a rank

  VGrid(const PipelineShape& shape, Backward backward);

  [[nodiscard]] int ranks() const { return shape_.ranks; }
  [[nodiscard]] const Row& row(int rank) const { return rows_[static_cast<std::size_t>(rank)]; }
  // Empty after the end of the row.
  [[nodiscard]] VCell at(int rank, int slot) const;
  [[nodiscard]] int width() const;  // slots of the longest row
  // The most chunks that a rank holds at once.
  [[nodiscard]] int peak() const;
  // The first slot after all inputs of the pass; nullopt while one of them has no slot.
  [[nodiscard]] std::optional<int> after_needs(int rank, const VCell& cell) const;

  // requires a free slot, here and below.
  void place(int rank, const VCell& cell, int slot);
  // The pass of every micro-batch, a period after the one before.
  void repeat(VPass pass, int rank, int first);
  VCell take(int rank, int slot);
  void move(int rank, int from, int to) { place(rank, take(rank, from), to); }

  // The passes of each rank by slot; a whole backward where it begins.
  [[nodiscard]] Schedule schedule() const;

 private:
  [[nodiscard]] int& slot_of(VPass pass, int rank, int micro_batch);
  [[nodiscard]] int slot_of(VPass pass, int rank, int micro_batch) const;
  // The part of a pass that a neighbour, or the chunk's own backward, waits for.
  [[nodiscard]] VPass end_of(VPass pass) const;
  [[nodiscard]] Action action(int rank, const VCell& cell) const;

  PipelineShape shape_;
  Backward backward_;
  std::vector<Row> rows_;                         // [rank]
  std::array<std::vector<int>, kVPasses> slots_;  // [pass][rank * m + micro-batch] -> slot, -1 = none
};

}  // namespace stagecraft
