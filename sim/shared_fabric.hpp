// Several jobs on one fabric: the iteration of one beside the iterations of others.
//
// All programs run in one engine over the same links. The measured job runs one iteration from time 0. Every
// other job repeats its own from its `start` until that has ended, each iteration starting when the previous
// one ends. So the given starts determine the phases in which jobs meet during the first iteration. Later
// iterations meet others in other phases; with more than one iteration the measured job repeats as well, for
// their mean. Nothing is random.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

// A job as lower() leaves it, with all links of the fabric.
struct FabricJob {
  std::string name;
  std::string nodes;  // text for the report
  Duration start{};
  Program program;
};

struct SharedRun {
  Timeline timeline;      // tasks of the measured job only; without links
  NetworkReport network;  // network use of all jobs together
};

// `own`: the measured job, with all links of the fabric; afterwards with its relevant links only. Each other
// job is also run alone, on links that change as those of `own` do from its start on, and alone with the
// measured one, which gives its cost. `iterations` above 1: this many consecutive iterations of the measured
// job, in another run of all jobs.
[[nodiscard]] SharedRun run_together(Program& own, std::span<const FabricJob> others, int iterations = 1);

}  // namespace stagecraft
