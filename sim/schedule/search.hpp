// An order of our own for given costs: at least as good as every named one, and how far from the best it can
// be.
//
//   starts    every named schedule of the placement that is legal for the sizes and stays within the memory,
//             and list scheduling, and 1F1B with its warm-up shrunk to the memory (one chunk) or one
//             micro-batch after the other, which run under any limit.
//   improves  by moving single passes of the chain that makes the order as long as it is, and keeping what is
//             not longer than a few tries ago (late acceptance), from the best starts in turn.
//   bound     lower_bound(); where it is met, or where the search through all orders ends, the order is
//             optimal.
//   effort    counted in passes replayed, not in seconds: the same question has the same answer on any
//             machine.
//   source    Burke and Bykov, "The late acceptance hill-climbing heuristic", EJOR 258 (2017); Giffler and
//             Thompson, "Algorithms for solving production-scheduling problems", Operations Research 8
//             (1960).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/schedule/costs.hpp"
#include "sim/schedule/evaluate.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/words.hpp"

namespace stagecraft {

struct SearchRequest {
  PipelineShape shape;
  Placement placement = Placement::kLoop;  // kLoop, or kV with two chunks
  ScheduleCosts costs = {};                // memory_limit 0: unlimited
  SearchGoal goal = SearchGoal::kSpan;
  std::int64_t effort = 20'000'000;    // passes replayed by the improvement
  std::int64_t exact_nodes = 400'000;  // partial orders looked at by the search through all; 0 = leave it out
  std::uint64_t seed = 1;
};

struct OrderSearchResult {
  Schedule schedule;
  Evaluation evaluation;
  std::int64_t length = 0;       // length by the goal
  std::int64_t lower_bound = 0;  // no order is shorter
  std::string best_named;        // the best named schedule within the memory; empty where there is none
  std::int64_t best_named_length = 0;
  std::int64_t plays = 0;  // orders replayed
  [[nodiscard]] bool optimal() const { return length == lower_bound; }
};

// The mistake in a request: sizes out of range, a placement that is not searched, a memory limit below the
// need of one micro-batch.
[[nodiscard]] std::optional<ScheduleProblem> search_constraint(const SearchRequest& request);

// requires a request that search_constraint() accepts.
[[nodiscard]] OrderSearchResult search_schedule(const SearchRequest& request);

// The best over the placements that the chunks allow: the loop, and with two chunks the V (its placement is the
// schedule's). Bound, best named and replayed orders are those of all of them.
[[nodiscard]] OrderSearchResult search_placements(SearchRequest request);

// The problem that a request poses.
[[nodiscard]] SearchProblem problem_of(const SearchRequest& request);

}  // namespace stagecraft
