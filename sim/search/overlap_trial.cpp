#include "sim/search/overlap_trial.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace stagecraft {
namespace {

constexpr std::string_view kPath = "overlap.tensor";

bool may_gain(const SearchPoint& point, const Scenario& scenario) {
  return point.sequence_parallel && point.tensor > 1 && !scenario.overlap.tensor &&
         !casts_to_fp4(scenario.training.precision, scenario.options.fp8_recipe) &&
         !scenario.origins.contains(std::string(kPath));
}

SearchPoint overlapped(SearchPoint point) {
  point.switches[*switch_at(kPath)] = 1;
  return point;
}

}  // namespace

std::vector<OverlapTrial> try_tensor_overlap(const SearchSpace& space, const SearchPlans& plans,
                                             std::span<const RankedPlan> listed, int threads) {
  std::vector<OverlapTrial> trials;
  if (space.find(kPath) != nullptr) return trials;
  SearchPlans tried{.frames = {}, .points = {}};
  std::map<std::uint32_t, std::uint32_t> frames;  // of `plans`: their index among those that are tried
  for (const RankedPlan& plan : listed.first(std::min(listed.size(), kMostOverlapTrials))) {
    const SearchPoint& point = plans.points[plan.point];
    const SearchFrame& frame = plans.frames[point.frame];
    if (!may_gain(point, frame.scenario)) continue;
    const auto [at, is_new] = frames.emplace(point.frame, static_cast<std::uint32_t>(tried.frames.size()));
    if (is_new) tried.frames.push_back(frame);
    tried.points.push_back(overlapped(point));
    tried.points.back().frame = at->second;
    trials.push_back({.point = plan.point});
  }
  if (trials.empty()) return trials;
  const SearchResult result = search_plans(tried, {.exhaustive = true, .threads = threads});
  for (const RankedPlan& plan : result.ranked) {
    trials[plan.point].plan = plan;
    trials[plan.point].plan->point = trials[plan.point].point;
  }
  return trials;
}

}  // namespace stagecraft
