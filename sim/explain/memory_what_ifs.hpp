// Changes that would make a job fit: one at a time, each simulated.
#pragma once

#include <string>
#include <vector>

#include "sim/simulate.hpp"

namespace stagecraft {

struct WhatIf {
  std::vector<std::string> change;  // as in --set: "training.recompute=full"
  Bytes peak;                       // peak of the fullest GPU
  Bytes on_host;                    // offloaded bytes on the fullest node
  Bytes shortage;                   // memory that GPUs and hosts lack together
  Verdict verdict = Verdict::kFits;
  Duration iteration_time{};
};

// The changed scenario with its description; the original is unchanged.
struct MemoryVariant {
  std::vector<std::string> change;
  Scenario scenario;
};
// Changes that can help a transformer: more recompute, the next ZeRO stages, states over more replicas, weights
// gathered again, half the micro-batch, weights in fp8, twice the tensor or pipeline degree with the GPUs kept,
// sequence parallelism, experts on more ranks, optimizer or activations in host memory, less offload. Whether a
// variant is feasible is not asked here. None for abstract stages.
[[nodiscard]] std::vector<MemoryVariant> memory_variants(const Scenario& scenario);

// A profile's software may be another one where weights or gradients are sharded: a change of the ZeRO stage
// alone, as in --set, keeps this one.
void keep_software(std::vector<std::string>& set, const Scenario& scenario, int zero_stage);

// The scenario of which changes are tried. A dead node stops the iteration of `report`, and says nothing of times:
// then it is the one without faults, which do not move memory.
[[nodiscard]] Scenario without_stop(Scenario scenario, const Report& report);

// The feasible variants that lack less memory than `now`, the ledger of the scenario; where none is lacking,
// those that use less of the fuller of GPUs and hosts. Fitting variants come first, by time, then the others
// by their shortage. requires a scenario whose iteration ends.
[[nodiscard]] std::vector<WhatIf> memory_what_ifs(const Scenario& scenario, const MemoryLedger& now);

}  // namespace stagecraft
