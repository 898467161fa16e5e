// Distributes a step's micro-batches over the pipelines so that the slowest finishes as early as possible.
//
// Every pipeline takes one micro-batch. Each further one goes to the pipeline that would finish it first, the
// first pipeline on a tie. A pipeline's time never falls with its micro-batches, so this is exact for the
// makespan. (The paper and its code minimise the variance of nb T / S with a mixed-integer solver instead.)
// Gradients are weighted by nb_i / B, so the update equals that of equal pipelines.
//
//   source  Jang et al., "Oobleck", SOSP 2023, section 4.2; docs/resilience.md, section 5.4
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/oobleck/templates.hpp"

namespace stagecraft {

struct BatchShares {
  std::vector<int> micro_batches = {};  // [pipeline], each at least 1
  Duration makespan{};                  // finish time of the last pipeline
};

// requires at least one pipeline, and a micro-batch for each. `time(pipeline, nb)` must not fall with nb.
[[nodiscard]] BatchShares share_micro_batches(
    int pipelines, int micro_batches, const std::function<Duration(int pipeline, int micro_batches)>& time);

// Shares the micro-batches among pipelines with these templates.
[[nodiscard]] BatchShares share_micro_batches(Templates& templates, std::span<const int> numbers,
                                              int micro_batches);

}  // namespace stagecraft
