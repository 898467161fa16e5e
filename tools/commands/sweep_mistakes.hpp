// A sweep of which no point is feasible: is that an answer, or a mistake of the sweep, its base or --set?
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/study/sweep_spec.hpp"

namespace stagecraft {

// What the first row says that holds for all of them, by place: a key that no point's scenario has (one that
// some have is theirs), and a value that cannot be read and that no point changes. Empty: it is an answer.
//
//   first_row    why its point is refused
//   all_unknown  does every row have a key that is unknown?
[[nodiscard]] std::vector<Diagnostic> mistakes_of(const SweepSpec& spec, const std::string& first_row,
                                                  bool all_unknown);

}  // namespace stagecraft
