// The diary of a job's first repeat: its stalls one by one, and the nodes that it trains on between them.
#pragma once

#include <vector>

#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "sim/report/goodput_report.hpp"

namespace stagecraft {

// `nodes`: of the job with its spares. They have the names of a trace where they are its nodes in their order
// (processes/trace_replay.hpp), else numbers.
[[nodiscard]] std::vector<GoodputEvent> diary_of(const GoodputResult& result, const FailureSpec& spec,
                                                 int nodes);

}  // namespace stagecraft
