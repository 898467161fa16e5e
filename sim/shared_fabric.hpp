// Several jobs on one fabric: the iteration of one beside the iterations of others.
//
// All programs run in one engine over the same links. The measured job runs one iteration from time 0; every
// other job repeats its own from its `start` until that has ended, each iteration beginning at the instant
// when the one before has ended. So the phases in which jobs meet are those of the starts that are given, in
// the first iteration of the measured job; later ones meet others in other phases, and where more than one is
// asked for, the measured job repeats its own as well, for their mean. Nothing is random.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

// A job as lower() leaves it, with all links of the fabric.
struct FabricJob {
  std::string name;
  std::string nodes;  // for the report
  Duration start{};
  Program program;
};

struct SharedRun {
  Timeline timeline;      // of the measured job's tasks alone; without links
  NetworkReport network;  // of all jobs together
};

// `own`: the measured job, with all links of the fabric; afterwards with those that matter to it alone. Each
// other job is also run alone, on links that change as those of `own` do from its start on, and alone beside
// the measured one, which says what it costs. `iterations`
// above 1: that many of the measured job in a row, in another run of all.
[[nodiscard]] SharedRun run_together(Program& own, std::span<const FabricJob> others, int iterations = 1);

}  // namespace stagecraft
