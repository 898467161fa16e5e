// The shortest of all orders, by branch and bound: the oracle of the search, for small pipelines.
//
// Enumerates active schedules (Giffler and Thompson, 1960): of all passes that could run next, take the one
// that would end first. On its rank it is next, or another that starts before that end. With several chunks a
// rank may also reserve memory for another chunk's forward, which is a branch of its own. A partial order is
// dropped when its bound is not below the best known length, or when another one has done the same passes
// with every rank and every message at least as early.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/schedule/words.hpp"

namespace stagecraft {

struct ExactResult {
  bool proven = false;               // were all orders examined?
  std::optional<RankWords> shorter;  // the best order below `known`, if one was found
  std::int64_t length = 0;           // of it, or `known`
  std::int64_t nodes = 0;
};

// Looks for an order shorter than `known`, through at most `nodes` partial orders. If proven and nothing
// shorter: no order is below `known`.
[[nodiscard]] ExactResult exact_search(const SearchProblem& problem, std::int64_t known, std::int64_t nodes);

}  // namespace stagecraft
