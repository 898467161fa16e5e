// V-Half and V-Min: one building block each, then the same pulling together of the ends.
//
// Weight gradients, the tails of split backwards, use the slots that the block leaves free. The ends are
// pulled to the left twice: each pass moves to the first free slot that is after its inputs and keeps the
// rank's peak. The first pull has the weight gradients in place at both ends. The second, at the end of the
// order, ignores their slots, so that they do not block other passes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/schedule/closed_forms.hpp"
#include "sim/schedule/shape.hpp"
#include "sim/schedule/v_grid.hpp"
#include "sim/schedule/v_schedules.hpp"

namespace stagecraft {
namespace {

constexpr std::array kInBlock = {VPass::kF0, VPass::kF1, VPass::kB1, VPass::kB0};
using FirstSlots = std::array<int, kInBlock.size()>;  // slots of micro-batch 0

FirstSlots v_min_block(int p, int rank) {
  const int late = p % 3 == 0 ? 2 : 0;
  return {rank, 2 * p - 1 - rank, 2 * p + late + rank, 4 * p + late - 1 - rank};
}

FirstSlots v_half_block(int p, int rank) {
  const int late = p % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * p - 2 - rank, 3 * p + late + 2 * rank - 1, 6 * p + late - 2 - rank};
}

// Activations held by a rank before a slot.
struct Held {
  int chunks = 0;
  int pending = 0;  // weight gradients to imagine
  friend bool operator==(const Held&, const Held&) = default;
};

class SplitBackwardsOnV {
 public:
  SplitBackwardsOnV(const PipelineShape& shape, FirstSlots (*block)(int p, int rank))
      : shape_(shape), grid_(shape, VGrid::Backward::kSplit) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const FirstSlots first = block(shape.ranks, rank);
      for (std::size_t i = 0; i < kInBlock.size(); ++i) grid_.repeat(kInBlock[i], rank, first[i]);
    }
  }

  // The schedule, once its ends are pulled together.
  [[nodiscard]] Schedule run() && {
    add_weight_gradients(false);
    const int cap = grid_.peak();
    pull({.cap = cap});
    squeeze();
    drop_weight_gradients();
    pull({.cap = cap, .warm_up = false, .imagine = true});
    add_weight_gradients(true);
    return grid_.schedule();
  }

 private:
  void add_weight_gradients(bool chunk_1_first) {
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      std::array<std::vector<VCell>, 2> queues;  // chunk 1, chunk 0; or all in the first, oldest first
      std::array<std::size_t, 2> taken{0, 0};
      for (int left = 2 * shape_.micro_batches, slot = 0; left > 0; ++slot) {
        const VCell cell = grid_.at(rank, slot);
        if (cell.is_beginning()) {
          queues[chunk_1_first && cell.pass == VPass::kB0 ? 1 : 0].push_back(
              {.pass = cell.pass == VPass::kB1 ? VPass::kTail1 : VPass::kTail0,
               .micro_batch = cell.micro_batch});
        }
        if (!cell.is_empty()) continue;
        const std::size_t queue = taken[0] < queues[0].size() ? 0 : 1;
        if (taken[queue] == queues[queue].size()) continue;
        grid_.place(rank, queues[queue][taken[queue]++], slot);
        --left;
      }
    }
  }

  void drop_weight_gradients() {
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      for (int slot = 0; slot < static_cast<int>(grid_.row(rank).size()); ++slot) {
        if (grid_.at(rank, slot).is_tail()) grid_.take(rank, slot);
      }
    }
  }

  struct Pull {
    int cap = 0;           // chunks that a rank may hold
    bool warm_up = true;   // the beginning as well as the end
    bool imagine = false;  // weight gradients are out of the table: think them into the first free slots
  };

  // The warm-up ends where rank 0 meets its first B0; the cool-down begins after the first forward of the
  // last micro-batch. In between nothing moves: the block repeats.
  void pull(const Pull& how) {
    note_what_is_held(how.imagine);
    enum { kWarmUp, kSteady, kCoolDown } phase = kWarmUp;
    for (const auto& [slot, rank] : walk()) {
      const VCell cell = grid_.at(rank, slot);
      if (phase == kWarmUp && cell.pass == VPass::kB0 && rank == 0) {
        phase = kSteady;
      } else if (phase == kSteady && cell.pass == VPass::kF0 &&
                 cell.micro_batch == shape_.micro_batches - 1) {
        phase = kCoolDown;
        continue;
      }
      if (phase == kCoolDown || (phase == kWarmUp && how.warm_up)) pull_one(rank, slot, how);
    }
  }

  // Moves every pass to as early a slot as the order allows.
  void squeeze() {
    const VGrid old = std::exchange(grid_, VGrid(shape_, VGrid::Backward::kSplit));
    std::vector<std::size_t> next(static_cast<std::size_t>(shape_.ranks), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < shape_.ranks; ++rank) {
        const VGrid::Row& row = old.row(rank);
        std::size_t& i = next[static_cast<std::size_t>(rank)];
        for (; i < row.size(); ++i) {
          if (row[i].is_empty()) continue;
          const std::optional<int> earliest = grid_.after_needs(rank, row[i]);
          if (!earliest) break;
          const int free = static_cast<int>(grid_.row(rank).size());
          grid_.place(rank, row[i], std::max(*earliest, free));
          moved = true;
        }
      }
    }
  }

  // All passes by slot, then rank.
  [[nodiscard]] std::vector<std::pair<int, int>> walk() const {
    std::vector<std::pair<int, int>> all;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const VGrid::Row& row = grid_.row(rank);
      for (std::size_t slot = 0; slot < row.size(); ++slot) {
        if (!row[slot].is_empty()) all.emplace_back(static_cast<int>(slot), rank);
      }
    }
    std::ranges::sort(all);
    return all;
  }

  static void step(Held& held, const VCell& cell, bool imagine) {
    if (cell.is_forward()) ++held.chunks;
    if (cell.is_tail()) --held.chunks;
    if (!imagine) return;
    if (cell.is_beginning()) ++held.pending;
    if (!cell.is_empty() || held.pending == 0) return;
    --held.pending;
    --held.chunks;
  }

  void note_what_is_held(bool imagine) {
    held_.clear();
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      std::vector<Held>& held = held_.emplace_back();
      Held now;
      for (const VCell& cell : grid_.row(rank)) {
        held.push_back(now);
        step(now, cell, imagine);
      }
    }
  }

  // Does the rank's peak stay under the cap from `from` on? Past `to`, where nothing was moved, the check
  // ends as soon as the held amount equals the earlier one.
  [[nodiscard]] bool keeps_peak(int rank, int from, int to, const Pull& how) const {
    const VGrid::Row& row = grid_.row(rank);
    const std::vector<Held>& before = held_[static_cast<std::size_t>(rank)];
    Held held = before[static_cast<std::size_t>(from)];
    for (auto slot = static_cast<std::size_t>(from); slot < row.size(); ++slot) {
      if (slot > static_cast<std::size_t>(to) && held == before[slot]) return true;
      step(held, row[slot], how.imagine);
      if (held.chunks > how.cap) return false;
    }
    return true;
  }

  void accept(int rank, int from, int to, bool imagine) {
    const VGrid::Row& row = grid_.row(rank);
    std::vector<Held>& held = held_[static_cast<std::size_t>(rank)];
    Held now = held[static_cast<std::size_t>(from)];
    for (auto slot = static_cast<std::size_t>(from); slot < row.size(); ++slot) {
      if (slot > static_cast<std::size_t>(to) && now == held[slot]) return;
      held[slot] = now;
      step(now, row[slot], imagine);
    }
  }

  void pull_one(int rank, int slot, const Pull& how) {
    const std::optional<int> earliest = grid_.after_needs(rank, grid_.at(rank, slot));
    SC_CHECK(earliest.has_value(), "every pass has a slot");
    for (int to = *earliest; to < slot; ++to) {
      if (!grid_.at(rank, to).is_empty()) continue;
      grid_.move(rank, slot, to);
      if (keeps_peak(rank, to, slot, how)) return accept(rank, to, slot, how.imagine);
      grid_.move(rank, to, slot);
    }
  }

  PipelineShape shape_;
  VGrid grid_;
  std::vector<std::vector<Held>> held_;  // [rank][slot] -> what is held in front of it
};

}  // namespace

std::optional<ScheduleProblem> v_half_constraint(const PipelineShape& shape) {
  return refuse_other_than_two_chunks(shape, "v-half");
}

std::optional<ScheduleProblem> v_min_constraint(const PipelineShape& shape) {
  return refuse_other_than_two_chunks(shape, "v-min");
}

std::optional<std::int64_t> v_half_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const int p = shape.ranks;
  if (!passes_alike(costs) || shape.micro_batches < 2 * p) return std::nullopt;
  if (p <= 2) return (p - 1) * costs.forward;
  return (p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) * costs.forward;
}

std::optional<std::int64_t> v_min_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const int p = shape.ranks;
  if (!passes_alike(costs) || shape.micro_batches <= p || p == 1) return std::nullopt;
  return (p % 3 == 0 ? 4 * p - 7 : 4 * p - 5) * costs.forward;
}

Schedule v_half(const PipelineShape& shape, const ScheduleCosts&) {
  return SplitBackwardsOnV(shape, v_half_block).run();
}

Schedule v_min(const PipelineShape& shape, const ScheduleCosts&) {
  return SplitBackwardsOnV(shape, v_min_block).run();
}

}  // namespace stagecraft
