// One process of a job that measures collectives over several hosts: which rank it is, and on which GPU.
//
// The launcher says so in the environment: Open MPI, MPICH and Intel MPI (PMI), Slurm. No MPI library is
// needed; ranks meet through the file that NCCL's unique id is written to.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "calibrate/bench/options.hpp"

namespace stagecraft {

struct NcclJob {
  int rank = 0, ranks = 1;
  int nodes = 1;  // hosts that the ranks are spread over, equally
  int device = 0;
  std::string id_file;
};

// A variable of the environment, or nullopt.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Empty without --id-file. What is given on the command line wins over the environment.
//   throws  UsageError: a rank outside [0, ranks), nodes that do not divide ranks, hosts that run different
//           numbers of them, a rank or a size that neither side gives, --rank without --id-file, and options
//           that ranks could not follow alike: --shapes, --families other than nccl, --list.
[[nodiscard]] std::optional<NcclJob> job_of(const CalibrateOptions& options, const Environment& environment);

// Hosts of a group of `ranks` neighbours. Empty where not all groups of the job would lie alike on their hosts.
[[nodiscard]] std::optional<int> nodes_of_group(const NcclJob& job, int ranks);

// What the options become in a job: no budget and no restarts, since every rank must come to every point;
// only rank 0 keeps samples.
[[nodiscard]] CalibrateOptions options_of_rank(CalibrateOptions options, const NcclJob& job);

}  // namespace stagecraft
