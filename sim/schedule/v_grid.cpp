#include "sim/schedule/v_grid.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// Calls need(VPass, rank) for each pass of its own micro-batch that a pass stands behind.
template <class Need>
void for_each_need(VPass pass, int rank, int ranks, const Need& need) {
  switch (pass) {
    case VPass::kF0:
      if (rank > 0) need(VPass::kF0, rank - 1);
      return;
    case VPass::kF1:
      rank + 1 < ranks ? need(VPass::kF1, rank + 1) : need(VPass::kF0, rank);
      return;
    case VPass::kB1:
      if (rank > 0) need(VPass::kB1, rank - 1);
      need(VPass::kF1, rank);
      return;
    case VPass::kB0:
      rank + 1 < ranks ? need(VPass::kB0, rank + 1) : need(VPass::kB1, rank);
      need(VPass::kF0, rank);
      return;
    case VPass::kTail1:
    case VPass::kTail0:
    case VPass::kNone:
      return;
  }
}

}  // namespace

VGrid::VGrid(const PipelineShape& shape, Backward backward)
    : shape_(shape), backward_(backward), rows_(static_cast<std::size_t>(shape.ranks)) {
  for (auto& slots : slots_) slots.assign(static_cast<std::size_t>(shape.ranks * shape.micro_batches), -1);
}

VCell VGrid::at(int rank, int slot) const {
  const Row& here = row(rank);
  return static_cast<std::size_t>(slot) < here.size() ? here[static_cast<std::size_t>(slot)] : VCell{};
}

int VGrid::width() const {
  std::size_t width = 0;
  for (const Row& row : rows_) width = std::max(width, row.size());
  return static_cast<int>(width);
}

int VGrid::peak() const {
  int peak = 0;
  for (const Row& row : rows_) {
    int held = 0;
    for (const VCell& cell : row) {
      if (cell.is_forward()) peak = std::max(peak, ++held);
      if (cell.is_tail()) --held;
    }
  }
  return peak;
}

std::optional<int> VGrid::after_needs(int rank, const VCell& cell) const {
  const int j = cell.micro_batch;
  int earliest = 0;
  bool known = true;
  const auto after = [&](VPass pass, int at_rank, int micro_batch) {
    const int slot = slot_of(pass, at_rank, micro_batch);
    known = known && slot >= 0;
    earliest = std::max(earliest, slot + 1);
  };
  if (j > 0) after(cell.pass, rank, j - 1);
  if (cell.is_tail())
    after(cell.pass == VPass::kTail1 ? VPass::kB1 : VPass::kB0, rank, j);
  else
    for_each_need(cell.pass, rank, ranks(),
                  [&](VPass need, int at_rank) { after(end_of(need), at_rank, j); });
  return known ? std::optional(earliest) : std::nullopt;
}

void VGrid::place(int rank, const VCell& cell, int slot) {
  Row& row = rows_[static_cast<std::size_t>(rank)];
  if (row.size() <= static_cast<std::size_t>(slot)) row.resize(static_cast<std::size_t>(slot) + 1);
  SC_CHECK(row[static_cast<std::size_t>(slot)].is_empty(), "one pass a slot");
  row[static_cast<std::size_t>(slot)] = cell;
  slot_of(cell.pass, rank, cell.micro_batch) = slot;
}

void VGrid::repeat(VPass pass, int rank, int first) {
  for (int j = 0; j < shape_.micro_batches; ++j)
    place(rank, {.pass = pass, .micro_batch = j}, first + kPeriod * j);
}

VCell VGrid::take(int rank, int slot) {
  const VCell cell =
      std::exchange(rows_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)], VCell{});
  slot_of(cell.pass, rank, cell.micro_batch) = -1;
  return cell;
}

Schedule VGrid::schedule() const {
  Schedule schedule{.name = {}, .shape = shape_, .placement = Placement::kV, .ranks = {}};
  for (int rank = 0; rank < ranks(); ++rank) {
    std::vector<Action>& order = schedule.ranks.emplace_back();
    for (const VCell& cell : row(rank)) {
      const bool second_half = cell.is_tail() && backward_ == Backward::kWhole;
      if (!cell.is_empty() && !second_half) order.push_back(action(rank, cell));
    }
  }
  return schedule;
}

Action VGrid::action(int rank, const VCell& cell) const {
  const bool whole = backward_ == Backward::kWhole;
  const bool chunk_0 = cell.pass == VPass::kF0 || cell.pass == VPass::kB0 || cell.pass == VPass::kTail0;
  return {.pass = cell.is_forward() ? Pass::kForward
                  : whole           ? Pass::kBackward
                  : cell.is_tail()  ? Pass::kWeightGradient
                                    : Pass::kInputGradient,
          .stage = chunk_0 ? rank : 2 * ranks() - 1 - rank,
          .micro_batch = cell.micro_batch};
}

VPass VGrid::end_of(VPass pass) const {
  if (backward_ == Backward::kSplit) return pass;
  return pass == VPass::kB1 ? VPass::kTail1 : pass == VPass::kB0 ? VPass::kTail0 : pass;
}

int VGrid::slot_of(VPass pass, int rank, int micro_batch) const {
  return slots_[static_cast<std::size_t>(pass)]
               [static_cast<std::size_t>(rank * shape_.micro_batches + micro_batch)];
}

int& VGrid::slot_of(VPass pass, int rank, int micro_batch) {
  return slots_[static_cast<std::size_t>(pass)]
               [static_cast<std::size_t>(rank * shape_.micro_batches + micro_batch)];
}

}  // namespace stagecraft
