// "What would make it fit": one change at a time, each really simulated.
#pragma once

#include <string>
#include <vector>

#include "sim/simulate.hpp"

namespace stagecraft {

struct WhatIf {
  std::vector<std::string> change;  // as of --set: "training.recompute=full"
  Bytes peak;
  Verdict verdict = Verdict::kFits;
  Duration iteration_time{};
};

// The changed scenario beside its words; the given one is not touched.
struct MemoryVariant {
  std::vector<std::string> change;
  Scenario scenario;
};
// Changes that can lower the peak of a transformer: more recompute, the next ZeRO stages, half the
// micro-batch, weights in fp8, twice the tensor or pipeline degree with the GPUs kept, sequence parallelism.
// Whether a variant is feasible is not asked here. None for abstract stages.
[[nodiscard]] std::vector<MemoryVariant> memory_variants(const Scenario& scenario);

// The feasible variants whose peak is below `peak`: those that fit first, by time; then the others, by peak.
[[nodiscard]] std::vector<WhatIf> memory_what_ifs(const Scenario& scenario, Bytes peak);

}  // namespace stagecraft
