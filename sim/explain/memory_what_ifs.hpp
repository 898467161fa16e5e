// "What would make it fit": one change at a time, each really simulated.
#pragma once

#include <string>
#include <vector>

#include "sim/simulate.hpp"

namespace stagecraft {

struct WhatIf {
  std::vector<std::string> change;  // as of --set: "training.recompute=full"
  Bytes peak;                       // of the fullest GPU
  Bytes on_host;                    // of the fullest node
  Bytes shortage;                   // what GPUs and hosts lack, together
  Verdict verdict = Verdict::kFits;
  Duration iteration_time{};
};

// The changed scenario beside its words; the given one is not touched.
struct MemoryVariant {
  std::vector<std::string> change;
  Scenario scenario;
};
// Changes that can help a transformer: more recompute, the next ZeRO stages, states over more replicas, weights
// gathered again, half the micro-batch, weights in fp8, twice the tensor or pipeline degree with the GPUs kept,
// sequence parallelism, experts on more ranks, less offload. Whether a variant is feasible is not asked here.
// None for abstract stages.
[[nodiscard]] std::vector<MemoryVariant> memory_variants(const Scenario& scenario);

// The feasible variants that lack less than `now`, the ledger of the scenario, or where nothing is lacking use less
// of what is fullest, GPUs or hosts: those that fit first, by time; then the others, by what they lack.
// requires a scenario whose iteration ends.
[[nodiscard]] std::vector<WhatIf> memory_what_ifs(const Scenario& scenario, const MemoryLedger& now);

}  // namespace stagecraft
