#include <algorithm>
#include <span>
#include <vector>

#include "sim/report/measure.hpp"
#include "sim/report/rank_passes.hpp"

namespace stagecraft {

Bubble measure_bubble(const Program& program, const Timeline& timeline, std::span<const int> weights) {
  const std::vector<RankPasses> ranks = passes_by_rank(program, timeline);
  Bubble bubble;
  if (ranks.empty()) return bubble;
  for (const RankPasses& rank : ranks) {
    bubble.makespan = std::max(bubble.makespan, rank.last);
    if (rank.work > Duration::zero()) bubble.span = std::max(bubble.span, rank.last - rank.first);
  }
  bubble.ideal = ranks[busiest_rank(ranks)].work;
  if (bubble.ideal > Duration::zero()) {
    bubble.over_ideal = static_cast<double>((bubble.makespan - bubble.ideal).count()) /
                        static_cast<double>(bubble.ideal.count());
    bubble.fraction = idle_share(ranks, weights, bubble.makespan);
  }
  return bubble;
}

}  // namespace stagecraft
