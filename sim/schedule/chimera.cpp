#include "sim/schedule/chimera.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {

std::optional<ScheduleProblem> chimera_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_interleaving(shape, "chimera", "dualpipe-v")) return problem;
  if (auto problem = refuse_odd_ranks(shape, "chimera", "dualpipe-v")) return problem;
  const int p = shape.ranks;
  const int m = shape.micro_batches;
  if (m % p == 0) return std::nullopt;
  const int below = m / p * p;
  const std::string fewer = below > 0 ? std::to_string(below) + " or " : "";
  return ScheduleProblem{.message = std::to_string(m) + " micro-batches: chimera runs them in units of its " +
                                    std::to_string(p) + " ranks",
                         .hint = fewer + std::to_string(below + p) + " micro-batches would be legal"};
}

std::vector<Action> chimera(const PipelineShape& shape, int rank) {
  SC_CHECK(!chimera_constraint(shape), "ask chimera_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const int p = shape.ranks;
  std::vector<std::pair<int, Action>> slots;
  slots.reserve(2 * static_cast<std::size_t>(shape.micro_batches));
  for (int unit = 0; unit < shape.micro_batches / p; ++unit) {
    for (int i = 0; i < p / 2; ++i) {
      const int base = 2 * (p * unit + i);
      const int down = unit * p + i;
      const int up = down + p / 2;
      const int up_stage = p - 1 - rank;
      slots.push_back({base + rank, {.pass = Pass::kForward, .stage = rank, .micro_batch = down}});
      slots.push_back(
          {base + 2 * p - 1 - rank, {.pass = Pass::kBackward, .stage = rank, .micro_batch = down}});
      slots.push_back({base + p - 1 - rank, {.pass = Pass::kForward, .stage = up_stage, .micro_batch = up}});
      slots.push_back({base + p + rank, {.pass = Pass::kBackward, .stage = up_stage, .micro_batch = up}});
    }
  }
  std::ranges::sort(slots, {}, &std::pair<int, Action>::first);
  std::vector<Action> order;
  order.reserve(slots.size());
  for (const auto& [slot, action] : slots) order.push_back(action);
  return order;
}

}  // namespace stagecraft
