// The result of a search, as a table and as JSON ("stagecraft.search/1").
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/search/overlap_trial.hpp"
#include "sim/search/plan_search.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

// A search: what was looked through, what was found, and what of it is shown.
struct SearchAnswer {
  std::string file;  // of the scenario, as it was given
  std::string name;
  SearchSpace space;
  SearchPlans plans;
  SearchResult result;
  std::size_t top = 10;  // plans that are listed
  bool exhaustive = false;
  std::vector<OverlapTrial> overlaps = {};  // of the plans that are listed
};

// At most so many of them, from the first on.
[[nodiscard]] std::vector<RankedPlan> first_plans(std::vector<RankedPlan> plans, std::size_t most);

// The plans of the first table: the best, or of several numbers of GPUs the best of each.
[[nodiscard]] std::vector<RankedPlan> listed_plans(const SearchAnswer& answer);

// The numbers of GPUs that were asked for and have none.
[[nodiscard]] std::vector<GpusWithoutPlan> planless(const SearchAnswer& answer);

// Tables for people: 80 columns where the space has no unusual axes.
[[nodiscard]] std::string render_text(const SearchAnswer& answer);
// One document on one line; docs/search.md has the keys.
[[nodiscard]] std::string render_json(const SearchAnswer& answer);

}  // namespace stagecraft
