// 1F1B-V: whole backwards of two slots in a V, repeated every six slots, then pulled to the left.
#include <vector>

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"
#include "sim/schedule/v_grid.hpp"
#include "sim/schedule/v_schedules.hpp"

namespace stagecraft {
namespace {

constexpr int kGap = 3;  // slots left out where the block would meet itself

class WholeBackwardsOnV {
 public:
  explicit WholeBackwardsOnV(const PipelineShape& shape) : grid_(shape, VGrid::Backward::kWhole) {
    lay_block();
    peak_ = grid_.peak();
    note_what_is_held();
  }

  void pull() {
    const int width = grid_.width();
    for (int slot = 0; slot < width; ++slot) {
      for (int rank = 0; rank < grid_.ranks(); ++rank) {
        const VCell cell = grid_.at(rank, slot);
        if (cell.is_empty()) continue;
        const std::optional<int> earliest = grid_.after_needs(rank, cell);
        SC_CHECK(earliest.has_value(), "every pass has a slot");
        const int to =
            cell.is_forward() ? for_forward(rank, slot, *earliest) : for_half(rank, slot, *earliest);
        if (to < slot) move(rank, slot, to);
      }
    }
  }

  [[nodiscard]] Schedule schedule() const { return grid_.schedule(); }

 private:
  // Micro-batch 0 down and up the V, forward and back; the others a period later each.
  void lay_block() {
    const int p = grid_.ranks();
    int slot = 0;
    for (int rank = 0; rank < p; ++rank) grid_.repeat(VPass::kF0, rank, slot++);
    for (int rank = p - 1; rank >= 0; --rank) grid_.repeat(VPass::kF1, rank, slot++);
    if (p % kGap == 0) slot += kGap;
    int since_gap = (kGap - (p + 2) % kGap) % kGap;
    const auto backward = [&](VPass beginning, VPass tail, int rank) {
      grid_.repeat(beginning, rank, slot);
      grid_.repeat(tail, rank, slot + 1);
      slot += 2;
      if (++since_gap < kGap) return;
      since_gap = 0;
      slot += kGap;
    };
    for (int rank = 0; rank < p; ++rank) backward(VPass::kB1, VPass::kTail1, rank);
    for (int rank = p - 1; rank >= 0; --rank) backward(VPass::kB0, VPass::kTail0, rank);
  }

  void note_what_is_held() {
    for (int rank = 0; rank < grid_.ranks(); ++rank) {
      std::vector<int>& held = held_.emplace_back();
      int now = 0;
      for (const VCell& cell : grid_.row(rank)) {
        if (cell.is_forward()) ++now;
        held.push_back(now);
        if (cell.is_tail()) --now;
      }
    }
  }

  // Down as long as the rank has room for one more, then up to the first free slot.
  [[nodiscard]] int for_forward(int rank, int slot, int earliest) const {
    const std::vector<int>& held = held_[static_cast<std::size_t>(rank)];
    int to = slot;
    while (to > earliest && held[static_cast<std::size_t>(to - 1)] < peak_) --to;
    while (to < slot && !grid_.at(rank, to).is_empty()) ++to;
    return to;
  }

  // The first free slot; for a first half, with room for the second behind it.
  [[nodiscard]] int for_half(int rank, int slot, int earliest) const {
    const bool first = grid_.at(rank, slot).is_beginning();
    for (int to = earliest; to < slot; ++to) {
      if (!grid_.at(rank, to).is_empty()) continue;
      if (!first || to + 1 == slot || grid_.at(rank, to + 1).is_empty()) return to;
    }
    return slot;
  }

  void move(int rank, int from, int to) {
    const VCell cell = grid_.at(rank, from);
    grid_.move(rank, from, to);
    std::vector<int>& held = held_[static_cast<std::size_t>(rank)];
    if (cell.is_forward()) {
      for (int slot = to; slot < from; ++slot) ++held[static_cast<std::size_t>(slot)];
    } else if (cell.is_tail()) {
      for (int slot = to + 1; slot <= from; ++slot) --held[static_cast<std::size_t>(slot)];
    }
  }

  VGrid grid_;
  int peak_ = 0;
  std::vector<std::vector<int>> held_;  // [rank][slot] -> chunks held during it
};

}  // namespace

std::optional<ScheduleProblem> one_f_one_b_v_constraint(const PipelineShape& shape) {
  return refuse_other_than_two_chunks(shape, "1f1b-v");
}

Schedule one_f_one_b_v(const PipelineShape& shape, const ScheduleCosts&) {
  WholeBackwardsOnV order(shape);
  order.pull();
  return order.schedule();
}

}  // namespace stagecraft
