// The family of collectives for a job of several processes, one a GPU.
//
// Without a job, nccl_items() (work_item.hpp) measures the GPUs of this host from one process. That adds 15
// to 20 us to small sizes on eight GPUs (nccl-tests, -g 8 against -g 1), which the tag process=one tells
// apart.
#pragma once

#include <vector>

#include "calibrate/bench/job.hpp"
#include "calibrate/bench/work_item.hpp"

namespace stagecraft {

// Every rank must be given the same items in the same order, so no rank may skip what its own results file
// has: only rank 0's measurements count, the others return repeats = 0.
// Rank 0 makes `<id_file>.<item>` for each item and removes it afterwards.
[[nodiscard]] std::vector<WorkItem> nccl_job_items(const Device& device, const NcclJob& job);

}  // namespace stagecraft
