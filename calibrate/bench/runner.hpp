// Runs a plan on a device and writes what it finds.
//
// Made to run unattended: an item that cannot be measured is skipped with a notice; one that gives a wrong
// result is reported and the rest goes on; one that loses the device or hangs is noted in <out>.failed and
// the program starts itself anew, which takes the file up where it was left.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/bench/options.hpp"
#include "calibrate/bench/work_item.hpp"

namespace stagecraft {

// Starts the program anew with what is left of the budget; returns only if it cannot.
using Restart = std::function<void()>;

struct RunContext {
  const CalibrateOptions& options;
  std::chrono::steady_clock::time_point started;
  Restart restart;
};

// Returns the exit code. Throws SampleLogError and CudaError where nothing could be begun.
[[nodiscard]] int run_items(const std::vector<WorkItem>& items, const RunContext& context);

// The plan as a table on standard output.
void print_plan(const std::vector<WorkItem>& items, const CalibrateOptions& options);

}  // namespace stagecraft
