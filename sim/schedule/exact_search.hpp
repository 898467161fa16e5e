// The shortest of all orders, by branch and bound: the oracle of the search, for small pipelines.
//
// Active schedules are enumerated (Giffler and Thompson, 1960): of all passes that could run next take the
// one that would end first; on its rank some pass must start before that, so one of those is next. With
// several chunks a rank may also leave room in its memory for another chunk's forward, which is a branch of
// its own. Partial orders are dropped when a bound says that they get no shorter than what is known, or when
// another one has done the same passes with every rank and every message at least as early.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/schedule/words.hpp"

namespace stagecraft {

struct ExactResult {
  bool proven = false;               // all orders were looked at
  std::optional<RankWords> shorter;  // the best order below `known`, if one was found
  std::int64_t length = 0;           // of it, or `known`
  std::int64_t nodes = 0;
};

// Looks for an order shorter than `known`, through at most so many partial orders. proven and nothing
// shorter: none is below `known`.
[[nodiscard]] ExactResult exact_search(const SearchProblem& problem, std::int64_t known, std::int64_t nodes);

}  // namespace stagecraft
