#include "sim/schedule/varuna.hpp"

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

// Micro-batches wait in ascending order for every pass, so that two counters are a queue.
struct Queue {
  int came = 0;
  int left = 0;
  [[nodiscard]] bool empty() const { return came == left; }
};

struct Rank {
  Queue forward, recompute, backward;
  bool half = false;  // has half of a backward run?
};

// Work of a rank in one tick.
enum class Tick { kIdle, kForward, kRecompute, kFirstHalf, kSecondHalf };

Tick next_tick(const Rank& rank) {
  if (rank.half) return Tick::kSecondHalf;
  if (!rank.backward.empty()) return Tick::kFirstHalf;
  if (!rank.recompute.empty()) return Tick::kRecompute;
  return rank.forward.empty() ? Tick::kIdle : Tick::kForward;
}

void add(Schedule& schedule, std::size_t rank, Pass pass, int micro_batch) {
  schedule.ranks[rank].push_back(
      {.pass = pass, .stage = static_cast<std::int32_t>(rank), .micro_batch = micro_batch});
}

void run_tick(Schedule& schedule, std::vector<Rank>& ranks, std::size_t r, Tick tick) {
  Rank& rank = ranks[r];
  const bool last = r + 1 == ranks.size();
  switch (tick) {
    case Tick::kIdle:
      break;
    case Tick::kForward:
      add(schedule, r, Pass::kForward, rank.forward.left++);
      ++(last ? rank.backward : ranks[r + 1].forward).came;
      break;
    case Tick::kRecompute:
      add(schedule, r, Pass::kRecompute, rank.recompute.left++);
      ++rank.backward.came;
      break;
    case Tick::kFirstHalf:
      add(schedule, r, Pass::kBackward, rank.backward.left++);
      rank.half = true;
      if (r > 0) ++ranks[r - 1].recompute.came;
      break;
    case Tick::kSecondHalf:
      rank.half = false;
      break;
  }
}

}  // namespace

std::optional<ScheduleProblem> varuna_constraint(const PipelineShape& shape) {
  return refuse_interleaving(shape, "varuna");
}

Schedule varuna(const PipelineShape& shape, const ScheduleCosts&) {
  SC_CHECK(!varuna_constraint(shape), "ask varuna_constraint first");
  const auto p = static_cast<std::size_t>(shape.ranks);
  Schedule schedule{.name = {}, .shape = shape, .ranks = std::vector<std::vector<Action>>(p)};
  for (std::vector<Action>& order : schedule.ranks)
    order.reserve(3 * static_cast<std::size_t>(shape.micro_batches));
  std::vector<Rank> ranks(p);
  ranks[0].forward.came = shape.micro_batches;
  std::vector<Tick> ticks(p, Tick::kIdle);
  while (ranks[0].backward.left < shape.micro_batches) {
    for (std::size_t r = 0; r < p; ++r) ticks[r] = next_tick(ranks[r]);
    for (std::size_t r = 0; r < p; ++r) run_tick(schedule, ranks, r, ticks[r]);
  }
  return schedule;
}

}  // namespace stagecraft
