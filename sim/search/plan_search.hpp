// The best plan for a model, a batch and GPUs: every plan of a space is placed, fits into memory or not, and
// is simulated unless it provably cannot be among the best.
//
//   1 placed      what the model, the batch, the schedule and the cluster do not take is refused, with a
//                 reason
//   2 fits        the memory ledger decides, without a simulation
//   3 bounded     a plan is left out only where its lower bound (sim/iteration_bound.hpp) is above the times
//                 of `top` simulated plans of as many GPUs, and above that of a simulated plan that has no
//                 more GPUs and no larger memory peak: so it is neither in the list nor on the Pareto front
//   4 simulated   all others, in the order of their bounds
//   5 promised    one that misses what the scenario's `assert` promises is refused, too, and leaves nothing
//                 out
//
//   ranked by the time of a sample; of equals the smaller peak, then the earlier in the space. The same
//   result on any number of threads: rounds of simulations are of one size, and what they leave out depends
//   on the rounds before alone.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/predict_iteration.hpp"
#include "sim/search/enumerate.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

struct SearchOptions {
  std::size_t top = 10;
  bool exhaustive = false;  // simulates all that fit
  int threads = 1;
  // Called with the number of finished plans and of all plans; false: stop.
  std::function<bool(std::size_t done, std::size_t all)> progress = [](std::size_t, std::size_t) {
    return true;
  };
};

// A plan that fits, was simulated and keeps what the scenario promises.
struct RankedPlan {
  std::size_t point = 0;  // index in the space
  Duration time{};        // time of an iteration
  HeldMemory memory;

  friend bool operator==(const RankedPlan&, const RankedPlan&) = default;
};

// Why plans were refused: one reason, with the first plan that it met; of a missed `assert` the nearest.
struct SearchRefusal {
  std::string code;  // code of the diagnostic, "out-of-memory" or "assertion-missed"
  std::string path;
  std::size_t count = 0;
  std::size_t point = 0;
  std::string message, hint;  // texts of that plan
  double missed_by = 0;       // of an `assert`, as a share of its limit
};

// A number of GPUs without a plan that is ranked.
struct GpusWithoutPlan {
  int gpus = 0;
  std::vector<SearchRefusal> refusals;  // most frequent first; none where no degrees of the space divide it
};

struct SearchResult {
  std::vector<SearchRefusal> refusals;        // most frequent first
  std::vector<GpusWithoutPlan> without_plan;  // of the scenarios of the space, ascending
  std::size_t placed = 0;                     // number of all plans that were placed
  std::size_t fitting = 0;                    // placed plans that fit
  std::size_t bounded = 0;                    // fitting plans that their bound left out
  bool stopped = false;                       // by `progress`
  std::vector<RankedPlan> ranked;             // all that were simulated and are not refused, best first
  std::vector<RankedPlan> pareto;  // no plan is better in time per sample, peak and GPUs; by GPUs, time
};

[[nodiscard]] SearchResult search_plans(const SearchPlans& plans, const SearchOptions& options);

// The scenario of a plan: `simulate()` gives it the time and the peak that the search says.
[[nodiscard]] Scenario scenario_of(const SearchPlans& plans, std::size_t point);

// Seconds of one sample.
[[nodiscard]] double sample_time(const SearchPlans& plans, const RankedPlan& plan);

}  // namespace stagecraft
