// The command `sweep` without saying who does the work: threads of this process, or the ranks of an MPI job.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "sim/study/payload_cache.hpp"
#include "sim/study/shared_warnings.hpp"
#include "sim/study/sweep_row.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

struct SweepWork {
  const Sweep& sweep;
  const DataDirectory& data;
  PayloadCache& cache;
  SharedWarnings& warnings;             // gets those of points that this process loads
  std::span<const std::size_t> points;  // to do, ascending
  std::function<bool(std::size_t point, const std::string& row)> accept;  // in this order; false: stop
  std::function<bool()> tick;                                             // now and then; false: stop
};

using SweepEngine = std::function<void(const SweepWork& work)>;

// An engine on `threads` threads of this process.
[[nodiscard]] SweepEngine sweep_on_threads(int threads);

[[nodiscard]] std::string sweep_file(const Arguments& arguments);  // throws UsageError unless there is one
[[nodiscard]] RowOptions row_options(const Arguments& arguments);

int sweep_command_on(const SweepEngine& engine, const Arguments& arguments, Session& session);

}  // namespace stagecraft
