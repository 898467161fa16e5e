// V-Half and V-Min: one building block each, then the same pulling together of the ends.
//
// Passes are of four types, named by the chunk and the way: F0 and I1 run down the ranks, F1 and I0 up.
// Weight gradients take what slots are left. Twice the ends are pulled to the left, each pass to the first
// free slot that is after its needs and keeps the rank's peak: with the weight gradients in place at both
// ends, and once more at the end of the order with weight gradients only imagined, so that they do not stand
// in the way.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"
#include "sim/schedule/v_needs.hpp"
#include "sim/schedule/v_schedules.hpp"

namespace stagecraft {
namespace {

enum Type : int { kF0, kF1, kI1, kI0, kW1, kW0, kEmpty };  // the first four as VPass
constexpr int kTypes = 6;
constexpr int kPeriod = 6;  // slots a micro-batch takes of a rank: two chunks of three passes

using FirstSlots = std::array<int, 4>;  // [F0, F1, I1, I0] of micro-batch 0

FirstSlots v_min_block(int p, int rank) {
  const int late = p % 3 == 0 ? 2 : 0;
  return {rank, 2 * p - 1 - rank, 2 * p + late + rank, 4 * p + late - 1 - rank};
}

FirstSlots v_half_block(int p, int rank) {
  const int late = p % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * p - 2 - rank, 3 * p + late + 2 * rank - 1, 6 * p + late - 2 - rank};
}

bool is_forward(int type) {
  return type == kF0 || type == kF1;
}
bool is_input_gradient(int type) {
  return type == kI0 || type == kI1;
}
bool is_weight_gradient(int type) {
  return type == kW0 || type == kW1;
}

bool alike(const StageCosts& costs) {
  return costs.forward == costs.input_gradient && costs.forward == costs.weight_gradient;
}

struct Cell {
  int type = kEmpty;
  int micro_batch = 0;
};

// What a rank holds in front of a slot.
struct Held {
  int chunks = 0;
  int pending = 0;  // weight gradients to imagine
  friend bool operator==(const Held&, const Held&) = default;
};

class SlotTable {
 public:
  SlotTable(const PipelineShape& shape, FirstSlots (*block)(int p, int rank))
      : p_(shape.ranks), m_(shape.micro_batches), cells_(static_cast<std::size_t>(p_)) {
    for (int rank = 0; rank < p_; ++rank) {
      const FirstSlots first = block(p_, rank);
      for (auto& starts : slots_) starts.resize(static_cast<std::size_t>(p_ * m_), 0);
      for (int type = kF0; type <= kI0; ++type) {
        for (int j = 0; j < m_; ++j) {
          place(rank, {.type = type, .micro_batch = j}, first[static_cast<std::size_t>(type)] + kPeriod * j);
        }
      }
    }
  }

  void add_weight_gradients(bool chunk_1_first) {
    for (int rank = 0; rank < p_; ++rank) {
      std::array<std::vector<Cell>, 2> queues;  // chunk 1, chunk 0; or all in the first, oldest first
      std::array<std::size_t, 2> taken{0, 0};
      for (int left = 2 * m_, slot = 0; left > 0; ++slot) {
        const Cell cell = at(rank, slot);
        if (is_input_gradient(cell.type)) {
          queues[chunk_1_first && cell.type == kI0 ? 1 : 0].push_back(
              {.type = cell.type == kI1 ? kW1 : kW0, .micro_batch = cell.micro_batch});
        }
        if (cell.type != kEmpty) continue;
        const std::size_t queue = taken[0] < queues[0].size() ? 0 : 1;
        if (taken[queue] == queues[queue].size()) continue;
        place(rank, queues[queue][taken[queue]++], slot);
        --left;
      }
    }
  }

  void drop_weight_gradients() {
    for (std::vector<Cell>& row : cells_) {
      for (Cell& cell : row) {
        if (is_weight_gradient(cell.type)) cell = {};
      }
    }
  }

  [[nodiscard]] int peak() const {
    int peak = 0;
    for (const std::vector<Cell>& row : cells_) {
      int held = 0;
      for (const Cell& cell : row) {
        if (is_forward(cell.type)) peak = std::max(peak, ++held);
        if (is_weight_gradient(cell.type)) --held;
      }
    }
    return peak;
  }

  struct Pull {
    int cap = 0;           // chunks that a rank may hold
    bool warm_up = true;   // the beginning as well as the end
    bool imagine = false;  // weight gradients are out of the table: think them into the first free slots
  };

  // The warm-up ends where rank 0 meets its first I0; the cool-down begins after the first forward of the
  // last micro-batch. In between nothing moves: the block repeats.
  void pull(const Pull& how) {
    note_what_is_held(how.imagine);
    enum { kWarmUp, kSteady, kCoolDown } phase = kWarmUp;
    for (const auto& [slot, rank] : walk()) {
      const Cell cell = at(rank, slot);
      if (phase == kWarmUp && cell.type == kI0 && rank == 0) {
        phase = kSteady;
      } else if (phase == kSteady && cell.type == kF0 && cell.micro_batch == m_ - 1) {
        phase = kCoolDown;
        continue;
      }
      if (phase == kCoolDown || (phase == kWarmUp && how.warm_up)) pull_one(rank, slot, how);
    }
  }

  // As early as the order allows, at a slot a pass.
  void squeeze() {
    const std::vector<std::vector<Cell>> old = std::exchange(cells_, {});
    cells_.resize(old.size());
    std::vector<std::size_t> next(old.size(), 0);
    std::array<std::vector<int>, kTypes> ends;
    for (auto& end : ends) end.assign(static_cast<std::size_t>(p_ * m_), -1);
    slots_ = ends;
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < p_; ++rank) {
        const std::vector<Cell>& row = old[static_cast<std::size_t>(rank)];
        std::size_t& i = next[static_cast<std::size_t>(rank)];
        for (; i < row.size(); ++i) {
          if (row[i].type == kEmpty) continue;
          const std::optional<int> earliest = after_needs(rank, row[i]);
          if (!earliest) break;
          const int free = static_cast<int>(cells_[static_cast<std::size_t>(rank)].size());
          place(rank, row[i], std::max(*earliest, free));
          moved = true;
        }
      }
    }
  }

  [[nodiscard]] std::vector<std::vector<Action>> orders() const {
    std::vector<std::vector<Action>> orders;
    for (int rank = 0; rank < p_; ++rank) {
      std::vector<Action>& order = orders.emplace_back();
      for (const Cell& cell : cells_[static_cast<std::size_t>(rank)]) {
        if (cell.type == kEmpty) continue;
        const bool chunk_0 = cell.type == kF0 || cell.type == kI0 || cell.type == kW0;
        const Pass pass = is_forward(cell.type)          ? Pass::kForward
                          : is_input_gradient(cell.type) ? Pass::kInputGradient
                                                         : Pass::kWeightGradient;
        order.push_back(
            {.pass = pass, .stage = chunk_0 ? rank : 2 * p_ - 1 - rank, .micro_batch = cell.micro_batch});
      }
    }
    return orders;
  }

 private:
  [[nodiscard]] Cell at(int rank, int slot) const {
    const std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
    return static_cast<std::size_t>(slot) < row.size() ? row[static_cast<std::size_t>(slot)] : Cell{};
  }
  [[nodiscard]] std::size_t index(int rank, int micro_batch) const {
    return static_cast<std::size_t>(rank * m_ + micro_batch);
  }
  [[nodiscard]] int slot_of(int type, int rank, int micro_batch) const {
    return slots_[static_cast<std::size_t>(type)][index(rank, micro_batch)];
  }
  void place(int rank, const Cell& cell, int slot) {
    std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
    if (row.size() <= static_cast<std::size_t>(slot)) row.resize(static_cast<std::size_t>(slot) + 1);
    SC_CHECK(row[static_cast<std::size_t>(slot)].type == kEmpty, "one pass a slot");
    row[static_cast<std::size_t>(slot)] = cell;
    slots_[static_cast<std::size_t>(cell.type)][index(rank, cell.micro_batch)] = slot;
  }

  // The first slot after what a pass needs and after its like of the previous micro-batch; nullopt while one
  // of them has no slot.
  [[nodiscard]] std::optional<int> after_needs(int rank, const Cell& cell) const {
    const int j = cell.micro_batch;
    int earliest = 0;
    bool known = true;
    const auto after = [&](int type, int at_rank, int micro_batch) {
      const int slot = slot_of(type, at_rank, micro_batch);
      known = known && slot >= 0;
      earliest = std::max(earliest, slot + 1);
    };
    if (j > 0) after(cell.type, rank, j - 1);
    if (is_weight_gradient(cell.type))
      after(cell.type == kW1 ? kI1 : kI0, rank, j);
    else
      for_each_v_need(static_cast<VPass>(cell.type), rank, p_,
                      [&](VPass need, int at_rank) { after(static_cast<int>(need), at_rank, j); });
    return known ? std::optional(earliest) : std::nullopt;
  }

  // All passes by slot, then rank.
  [[nodiscard]] std::vector<std::pair<int, int>> walk() const {
    std::vector<std::pair<int, int>> all;
    for (int rank = 0; rank < p_; ++rank) {
      const std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
      for (std::size_t slot = 0; slot < row.size(); ++slot) {
        if (row[slot].type != kEmpty) all.emplace_back(static_cast<int>(slot), rank);
      }
    }
    std::ranges::sort(all);
    return all;
  }

  static void step(Held& held, int type, bool imagine) {
    if (is_forward(type)) ++held.chunks;
    if (is_weight_gradient(type)) --held.chunks;
    if (!imagine) return;
    if (is_input_gradient(type)) ++held.pending;
    if (type != kEmpty || held.pending == 0) return;
    --held.pending;
    --held.chunks;
  }

  void note_what_is_held(bool imagine) {
    held_.assign(cells_.size(), {});
    for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
      Held held;
      held_[rank].reserve(cells_[rank].size());
      for (const Cell& cell : cells_[rank]) {
        held_[rank].push_back(held);
        step(held, cell.type, imagine);
      }
    }
  }

  // Whether the rank's peak stays under the cap from `from` on. Past `to`, where nothing was moved, it ends
  // as soon as what is held is what was held before.
  [[nodiscard]] bool keeps_peak(int rank, int from, int to, const Pull& how) const {
    const std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
    const std::vector<Held>& before = held_[static_cast<std::size_t>(rank)];
    Held held = before[static_cast<std::size_t>(from)];
    for (auto slot = static_cast<std::size_t>(from); slot < row.size(); ++slot) {
      if (slot > static_cast<std::size_t>(to) && held == before[slot]) return true;
      step(held, row[slot].type, how.imagine);
      if (held.chunks > how.cap) return false;
    }
    return true;
  }

  void accept(int rank, int from, int to, bool imagine) {
    const std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
    std::vector<Held>& held = held_[static_cast<std::size_t>(rank)];
    Held now = held[static_cast<std::size_t>(from)];
    for (auto slot = static_cast<std::size_t>(from); slot < row.size(); ++slot) {
      if (slot > static_cast<std::size_t>(to) && now == held[slot]) return;
      held[slot] = now;
      step(now, row[slot].type, imagine);
    }
  }

  void pull_one(int rank, int slot, const Pull& how) {
    std::vector<Cell>& row = cells_[static_cast<std::size_t>(rank)];
    Cell& from = row[static_cast<std::size_t>(slot)];
    const std::optional<int> earliest = after_needs(rank, from);
    SC_CHECK(earliest.has_value(), "every pass has a slot");
    for (int to = *earliest; to < slot; ++to) {
      Cell& target = row[static_cast<std::size_t>(to)];
      if (target.type != kEmpty) continue;
      std::swap(from, target);
      if (!keeps_peak(rank, to, slot, how)) {
        std::swap(from, target);
        continue;
      }
      slots_[static_cast<std::size_t>(target.type)][index(rank, target.micro_batch)] = to;
      accept(rank, to, slot, how.imagine);
      return;
    }
  }

  int p_;
  int m_;
  std::vector<std::vector<Cell>> cells_;        // [rank][slot]
  std::array<std::vector<int>, kTypes> slots_;  // [type][rank * m + micro-batch] -> slot, -1 = none
  std::vector<std::vector<Held>> held_;         // [rank][slot] -> what is held in front of it
};

Schedule from_block(const PipelineShape& shape, FirstSlots (*block)(int p, int rank)) {
  SlotTable table(shape, block);
  table.add_weight_gradients(false);
  const int cap = table.peak();
  table.pull({.cap = cap});
  table.squeeze();
  table.drop_weight_gradients();
  table.pull({.cap = cap, .warm_up = false, .imagine = true});
  table.add_weight_gradients(true);
  return {.name = {}, .shape = shape, .placement = Placement::kV, .ranks = table.orders()};
}

}  // namespace

std::optional<ScheduleProblem> v_half_constraint(const PipelineShape& shape) {
  return refuse_other_than_two_chunks(shape, "v-half");
}

std::optional<ScheduleProblem> v_min_constraint(const PipelineShape& shape) {
  return refuse_other_than_two_chunks(shape, "v-min");
}

std::optional<std::int64_t> v_half_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const int p = shape.ranks;
  if (!alike(costs) || shape.micro_batches < 2 * p) return std::nullopt;
  if (p <= 2) return (p - 1) * costs.forward;
  return (p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) * costs.forward;
}

std::optional<std::int64_t> v_min_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const int p = shape.ranks;
  if (!alike(costs) || shape.micro_batches <= p || p == 1) return std::nullopt;
  return (p % 3 == 0 ? 4 * p - 7 : 4 * p - 5) * costs.forward;
}

Schedule v_half(const PipelineShape& shape, const ScheduleCosts&) {
  return from_block(shape, v_half_block);
}

Schedule v_min(const PipelineShape& shape, const ScheduleCosts&) {
  return from_block(shape, v_min_block);
}

}  // namespace stagecraft
