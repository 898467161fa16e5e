// 1F1B-V: whole backwards of two slots in a V, repeated every six slots, then pulled to the left.
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"
#include "sim/schedule/v_needs.hpp"
#include "sim/schedule/v_schedules.hpp"

namespace stagecraft {
namespace {

// A backward is two half passes; the chunk is the digit.
enum Type : int { kF0, kF1, kB1First, kB1Second, kB0First, kB0Second, kEmpty };
constexpr int kTypes = 6;
constexpr int kPeriod = 6;
constexpr int kGap = 3;  // slots left out where the block would meet itself

struct Cell {
  int type = kEmpty;
  int micro_batch = 0;
};

class Table {
 public:
  explicit Table(const PipelineShape& shape)
      : p_(shape.ranks), m_(shape.micro_batches), cells_(static_cast<std::size_t>(p_)) {
    for (auto& slots : slots_) slots.resize(static_cast<std::size_t>(p_ * m_), 0);
    lay_block();
    for (std::vector<Cell>& row : cells_) row.resize(static_cast<std::size_t>(width_));
    note_what_is_held();
  }

  void pull() {
    for (int slot = 0; slot < width_; ++slot) {
      for (int rank = 0; rank < p_; ++rank) {
        const Cell cell = at(rank, slot);
        if (cell.type == kEmpty) continue;
        const int earliest = after_needs(rank, cell);
        const int to = is_forward(cell) ? for_forward(rank, slot, earliest) : for_half(rank, slot, earliest);
        if (to < slot) move(rank, slot, to);
      }
    }
  }

  [[nodiscard]] std::vector<std::vector<Action>> orders() const {
    std::vector<std::vector<Action>> orders;
    for (int rank = 0; rank < p_; ++rank) {
      std::vector<Action>& order = orders.emplace_back();
      for (const Cell& cell : cells_[static_cast<std::size_t>(rank)]) {
        if (cell.type == kEmpty || is_second(cell)) continue;
        const bool chunk_0 = cell.type == kF0 || cell.type == kB0First;
        order.push_back({.pass = is_forward(cell) ? Pass::kForward : Pass::kBackward,
                         .stage = chunk_0 ? rank : 2 * p_ - 1 - rank,
                         .micro_batch = cell.micro_batch});
      }
    }
    return orders;
  }

 private:
  static bool is_forward(const Cell& cell) { return cell.type == kF0 || cell.type == kF1; }
  static bool is_second(const Cell& cell) { return cell.type == kB1Second || cell.type == kB0Second; }
  [[nodiscard]] Cell at(int rank, int slot) const {
    return cells_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] std::size_t index(int rank, int micro_batch) const {
    return static_cast<std::size_t>(rank * m_ + micro_batch);
  }

  // Micro-batch 0 down and up the V, forward and back; the others a period later each.
  void lay_block() {
    int slot = 0;
    for (int rank = 0; rank < p_; ++rank) lay(kF0, rank, slot++);
    for (int rank = p_ - 1; rank >= 0; --rank) lay(kF1, rank, slot++);
    if (p_ % kGap == 0) slot += kGap;
    int since_gap = (kGap - (p_ + 2) % kGap) % kGap;
    const auto backward = [&](Type first, Type second, int rank) {
      lay(first, rank, slot);
      lay(second, rank, slot + 1);
      slot += 2;
      if (++since_gap < kGap) return;
      since_gap = 0;
      slot += kGap;
    };
    for (int rank = 0; rank < p_; ++rank) backward(kB1First, kB1Second, rank);
    for (int rank = p_ - 1; rank >= 0; --rank) backward(kB0First, kB0Second, rank);
  }

  void lay(Type type, int rank, int first) {
    std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
    for (int j = 0; j < m_; ++j) {
      const int slot = first + kPeriod * j;
      if (row.size() <= static_cast<std::size_t>(slot)) row.resize(static_cast<std::size_t>(slot) + 1);
      SC_CHECK(row[static_cast<std::size_t>(slot)].type == kEmpty, "one pass a slot");
      row[static_cast<std::size_t>(slot)] = {.type = type, .micro_batch = j};
      slots_[static_cast<std::size_t>(type)][index(rank, j)] = slot;
      width_ = std::max(width_, slot + 1);
    }
  }

  void note_what_is_held() {
    held_.resize(cells_.size());
    for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
      int held = 0;
      for (const Cell& cell : cells_[rank]) {
        if (is_forward(cell)) ++held;
        held_[rank].push_back(held);
        peak_ = std::max(peak_, held);
        if (is_second(cell)) --held;
      }
    }
  }

  [[nodiscard]] int after_needs(int rank, const Cell& cell) const {
    const int j = cell.micro_batch;
    int earliest = 0;
    const auto after = [&](int type, int at_rank, int micro_batch) {
      earliest = std::max(earliest, 1 + slots_[static_cast<std::size_t>(type)][index(at_rank, micro_batch)]);
    };
    if (j > 0) after(cell.type, rank, j - 1);
    if (is_second(cell)) {
      after(cell.type - 1, rank, j);  // the first half
      return earliest;
    }
    // Indexed by VPass: which pass starts with the cell, and when a backward is done.
    static constexpr std::array<int, 4> kStarts = {kF0, kF1, kB1First, kB0First};
    static constexpr std::array<int, 4> kEnds = {kF0, kF1, kB1Second, kB0Second};
    const auto pass = static_cast<VPass>(std::ranges::find(kStarts, cell.type) - kStarts.begin());
    for_each_v_need(pass, rank, p_, [&](VPass need, int at_rank) {
      after(kEnds[static_cast<std::size_t>(need)], at_rank, j);
    });
    return earliest;
  }

  // Down as long as the rank has room for one more, then up to the first free slot.
  [[nodiscard]] int for_forward(int rank, int slot, int earliest) const {
    const std::vector<int>& held = held_[static_cast<std::size_t>(rank)];
    int to = slot;
    while (to > earliest && held[static_cast<std::size_t>(to - 1)] < peak_) --to;
    while (to < slot && at(rank, to).type != kEmpty) ++to;
    return to;
  }

  // The first free slot; for a first half, with room for the second behind it.
  [[nodiscard]] int for_half(int rank, int slot, int earliest) const {
    const Cell cell = at(rank, slot);
    const bool first = !is_second(cell);
    for (int to = earliest; to < slot; ++to) {
      if (at(rank, to).type != kEmpty) continue;
      if (!first || to + 1 == slot || at(rank, to + 1).type == kEmpty) return to;
    }
    return slot;
  }

  void move(int rank, int from, int to) {
    std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
    std::vector<int>& held = held_[static_cast<std::size_t>(rank)];
    const Cell cell = std::exchange(row[static_cast<std::size_t>(from)], Cell{});
    row[static_cast<std::size_t>(to)] = cell;
    slots_[static_cast<std::size_t>(cell.type)][index(rank, cell.micro_batch)] = to;
    if (is_forward(cell)) {
      for (int slot = to; slot < from; ++slot) ++held[static_cast<std::size_t>(slot)];
    } else if (is_second(cell)) {
      for (int slot = to + 1; slot <= from; ++slot) --held[static_cast<std::size_t>(slot)];
    }
  }

  int p_;
  int m_;
  int width_ = 0;  // slots
  int peak_ = 0;
  std::vector<std::vector<Cell>> cells_;        // [rank][slot]
  std::array<std::vector<int>, kTypes> slots_;  // [type][rank * m + micro-batch] -> slot
  std::vector<std::vector<int>> held_;          // [rank][slot] -> chunks held during it
};

}  // namespace

std::optional<ScheduleProblem> one_f_one_b_v_constraint(const PipelineShape& shape) {
  return refuse_other_than_two_chunks(shape, "1f1b-v");
}

Schedule one_f_one_b_v(const PipelineShape& shape, const ScheduleCosts&) {
  Table table(shape);
  table.pull();
  return {.name = {}, .shape = shape, .placement = Placement::kV, .ranks = table.orders()};
}

}  // namespace stagecraft
