// What listed plans would gain from overlap.tensor, which the default space leaves out.
//
// Not every software runs tensor collectives in chunks beside their GEMMs, so that a search ranks its plans
// without them. To rank all plans with and without takes up to 1.7 times the simulations; to try the listed
// ones takes as many simulations as are listed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sim/search/enumerate.hpp"
#include "sim/search/plan_search.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

// Of longer lists the first are tried.
inline constexpr std::size_t kMostOverlapTrials = 64;

// A listed plan with this overlap.
struct OverlapTrial {
  std::size_t point = 0;  // index of the plan in the space
  // Its time and memory; nullopt where its buffers do not fit, or it misses what the scenario promises.
  std::optional<RankedPlan> plan = {};
};

// A trial of each plan with sequence parallelism over several tensor ranks, in their order. None where the space
// varies this overlap, or the scenario says what it is.
[[nodiscard]] std::vector<OverlapTrial> try_tensor_overlap(const SearchSpace& space, const SearchPlans& plans,
                                                           std::span<const RankedPlan> listed, int threads);

}  // namespace stagecraft
