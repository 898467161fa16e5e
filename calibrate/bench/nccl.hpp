// The family of collectives for a job of several processes, one a GPU.
//
// Without a job, nccl_items() (work_item.hpp) measures the GPUs of this host from one process. That adds 15
// to 20 us to small sizes on eight GPUs (nccl-tests, -g 8 against -g 1), which the tag process=one tells
// apart.
#pragma once

#include <string>
#include <vector>

#include "calibrate/bench/work_item.hpp"

namespace stagecraft {

// --rank, --ranks, --id-file. The id file is on a file system that all ranks see; rank 0 makes
// `<id_file>.<item>` for each item and removes it afterwards. It must not exist when the job starts.
struct NcclJob {
  int rank = 0, ranks = 1;
  int nodes = 1;  // hosts that the ranks are spread over, equally
  std::string id_file;
};

// Every rank must be given the same items in the same order, so no rank may skip what its own results file
// has: only rank 0's measurements count, the others return repeats = 0.
//   throws  std::invalid_argument on a rank outside [0, ranks), or nodes that do not divide ranks.
[[nodiscard]] std::vector<WorkItem> nccl_job_items(const Device& device, const NcclJob& job);

}  // namespace stagecraft
