#include "calibrate/bench/job.hpp"

#include <array>
#include <charconv>

namespace stagecraft {
namespace {

// The names that a launcher uses.
struct Launcher {
  const char* rank;
  const char* ranks;
  const char* local_rank;   // of the process on its host
  const char* local_ranks;  // processes of the host; null: the launcher gives none
};

constexpr std::array kLaunchers = {
    Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Launcher{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    Launcher{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
};

std::optional<int> number(const Environment& environment, const char* name) {
  if (name == nullptr) return std::nullopt;
  const std::optional<std::string> text = environment(name);
  if (!text) return std::nullopt;
  int value = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0)
    throw UsageError(std::string(name) + "=" + *text + " in the environment: a number from 0 is expected");
  return value;
}

// What the first launcher that speaks says, one that knows the place on the host before one that does not (srun
// with PMI-2 sets PMI_RANK beside Slurm's own); nothing is mixed from two.
struct Launched {
  std::optional<int> rank, ranks, local_rank, nodes;
  std::string uneven;  // why the hosts cannot be counted; empty: they can
};

Launched said_by(const Launcher& launcher, const Environment& environment) {
  Launched said{.rank = number(environment, launcher.rank),
                .ranks = number(environment, launcher.ranks),
                .local_rank = number(environment, launcher.local_rank),
                .nodes = {},
                .uneven = {}};
  const std::optional<int> local = number(environment, launcher.local_ranks);
  if (local && *local > 0 && said.ranks) {
    said.nodes = *said.ranks / *local;
    if (*said.nodes * *local != *said.ranks)
      said.uneven = std::to_string(*said.ranks) + " ranks, " + std::to_string(*local) + " on this host";
  }
  if (launcher.local_ranks != nullptr) return said;
  said.nodes = number(environment, "SLURM_NNODES");
  const std::optional<std::string> tasks = environment("SLURM_TASKS_PER_NODE");  // 8(x2), or 8,4
  if (tasks && tasks->find(',') != std::string::npos) said.uneven = "SLURM_TASKS_PER_NODE=" + *tasks;
  return said;
}

Launched ask(const Environment& environment) {
  for (const bool on_host : {true, false})
    for (const Launcher& launcher : kLaunchers)
      if (environment(launcher.rank) && (!on_host || environment(launcher.local_rank)))
        return said_by(launcher, environment);
  return {};
}

void refuse_what_ranks_cannot_follow(const CalibrateOptions& options) {
  if (!options.shapes.empty())
    throw UsageError("--shapes and --id-file: a job measures the list of collectives");
  if (options.list) throw UsageError("--list and --id-file: leave --id-file out to see a plan");
  for (const std::string& family : options.families)
    if (family != "nccl")
      throw UsageError("--families " + family + " and --id-file: a job measures nccl alone");
}

}  // namespace

std::optional<NcclJob> job_of(const CalibrateOptions& options, const Environment& environment) {
  if (options.id_file.empty()) {
    if (options.rank || options.ranks || options.nodes)
      throw UsageError("--rank, --ranks and --nodes are of a job: give --id-file FILE as well");
    return std::nullopt;
  }
  refuse_what_ranks_cannot_follow(options);
  const Launched said = ask(environment);
  const std::optional<int> rank = options.rank ? options.rank : said.rank;
  const std::optional<int> ranks = options.ranks ? options.ranks : said.ranks;
  if (!rank || !ranks)
    throw UsageError("--id-file: no launcher says which rank this is; give --rank N and --ranks N");
  if (!options.nodes && !said.uneven.empty())
    throw UsageError(said.uneven + ": every node runs the same number");
  NcclJob job{.rank = *rank,
              .ranks = *ranks,
              .nodes = options.nodes.value_or(said.nodes.value_or(1)),
              .device = 0,
              .id_file = options.id_file};
  if (job.ranks < 2 || job.rank >= job.ranks)
    throw UsageError("rank " + std::to_string(job.rank) + " of " + std::to_string(job.ranks) +
                     ": a job has 2 ranks or more, counted from 0");
  if (job.nodes < 1 || job.ranks % job.nodes != 0)
    throw UsageError(std::to_string(job.ranks) + " ranks on " + std::to_string(job.nodes) +
                     " nodes: every node runs the same number");
  job.device = options.device.value_or(said.local_rank.value_or(job.rank % (job.ranks / job.nodes)));
  return job;
}

std::optional<int> nodes_of_group(const NcclJob& job, int ranks) {
  const int on_host = job.ranks / job.nodes;
  if (job.ranks % ranks != 0) return std::nullopt;
  if (on_host % ranks == 0) return 1;
  return ranks % on_host == 0 ? std::optional(ranks / on_host) : std::nullopt;
}

CalibrateOptions options_of_rank(CalibrateOptions options, const NcclJob& job) {
  options.budget_seconds = std::nullopt;
  options.device = job.device;
  if (job.rank != 0) options.out.assign(1, '-');
  return options;
}

}  // namespace stagecraft
