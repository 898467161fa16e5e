// Which rank of a job a process is, and on which GPU.
#include "calibrate/bench/job.hpp"

#include <gtest/gtest.h>

#include <map>

namespace stagecraft {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<NcclJob> job(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  return job_of(parse_options(arguments), [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  try {
    (void)job(arguments, variables);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "11"},
                            {"OMPI_COMM_WORLD_SIZE", "16"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}};

TEST(Job, IsThereOnlyWithAnIdFile) {
  EXPECT_FALSE(job({}));
  EXPECT_FALSE(job({}, kOpenMpi));  // one process under a launcher measures its own host
  EXPECT_EQ(refusal({"--rank", "0"}),
            "--rank, --ranks and --nodes are of a job: give --id-file FILE as well");
}

TEST(Job, TakesRankHostsAndDeviceFromOpenMpi) {
  const auto found = job({"--id-file", "id"}, kOpenMpi);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 11);
  EXPECT_EQ(found->ranks, 16);
  EXPECT_EQ(found->nodes, 2);
  EXPECT_EQ(found->device, 3);
}

TEST(Job, TakesThemFromSlurm) {
  const auto found =
      job({"--id-file=id"},
          {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}, {"SLURM_NNODES", "2"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 5);
  EXPECT_EQ(found->ranks, 8);
  EXPECT_EQ(found->nodes, 2);
  EXPECT_EQ(found->device, 1);
}

// srun --mpi=pmi2: PMI_RANK says nothing of hosts.
TEST(Job, TakesThemFromSlurmBesideItsPmi) {
  const auto found = job({"--id-file=id"}, {{"PMI_RANK", "5"},
                                            {"PMI_SIZE", "8"},
                                            {"SLURM_PROCID", "5"},
                                            {"SLURM_NTASKS", "8"},
                                            {"SLURM_LOCALID", "1"},
                                            {"SLURM_NNODES", "2"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nodes, 2);
  EXPECT_EQ(found->device, 1);
}

TEST(Job, TakesThemFromThePmiOfMpich) {
  const auto found =
      job({"--id-file=id"},
          {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->nodes, 1);
  EXPECT_EQ(found->device, 1);
}

TEST(Job, BelievesTheCommandLineFirst) {
  const auto found =
      job({"--id-file", "id", "--rank", "2", "--ranks", "4", "--nodes", "4", "--device", "6"}, kOpenMpi);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->ranks, 4);
  EXPECT_EQ(found->nodes, 4);
  EXPECT_EQ(found->device, 6);
}

TEST(Job, CountsDevicesAlongTheRanksOfAHostByHand) {
  const auto found = job({"--id-file", "id", "--rank", "9", "--ranks", "16", "--nodes", "2"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, 1);
}

TEST(Job, SaysWhatIsMissingOrImpossible) {
  EXPECT_EQ(refusal({"--id-file", "id"}),
            "--id-file: no launcher says which rank this is; give --rank N and --ranks N");
  EXPECT_EQ(refusal({"--id-file", "id", "--rank", "4", "--ranks", "4"}),
            "rank 4 of 4: a job has 2 ranks or more, counted from 0");
  EXPECT_EQ(refusal({"--id-file", "id", "--rank", "0", "--ranks", "4", "--nodes", "3"}),
            "4 ranks on 3 nodes: every node runs the same number");
  Variables uneven = kOpenMpi;  // 8 on this host and 4 on another are not one host
  uneven["OMPI_COMM_WORLD_SIZE"] = "12";
  EXPECT_EQ(refusal({"--id-file", "id"}, uneven),
            "12 ranks, 8 on this host: every node runs the same number");
  EXPECT_EQ(refusal({"--id-file", "id", "--nodes", "12"}, uneven), "accepted");
  EXPECT_EQ(refusal({"--id-file", "id"}, {{"SLURM_PROCID", "5"},
                                          {"SLURM_NTASKS", "12"},
                                          {"SLURM_LOCALID", "5"},
                                          {"SLURM_NNODES", "2"},
                                          {"SLURM_TASKS_PER_NODE", "8,4"}}),
            "SLURM_TASKS_PER_NODE=8,4: every node runs the same number");
  EXPECT_EQ(refusal({"--id-file", "id"}, {{"SLURM_PROCID", "x"}}),
            "SLURM_PROCID=x in the environment: a number from 0 is expected");
}

TEST(Job, PartsIntoGroupsThatLieAlikeOnTheirHosts) {
  const NcclJob of_eight{.ranks = 16, .nodes = 2, .id_file = "id"},
      of_six{.ranks = 24, .nodes = 4, .id_file = "id"};
  EXPECT_EQ(nodes_of_group(of_eight, 2), 1);
  EXPECT_EQ(nodes_of_group(of_eight, 8), 1);
  EXPECT_EQ(nodes_of_group(of_eight, 16), 2);
  EXPECT_EQ(nodes_of_group(of_six, 2), 1);
  EXPECT_EQ(nodes_of_group(of_six, 12), 2);
  EXPECT_EQ(nodes_of_group(of_six, 8), std::nullopt);  // six and two, two and six
  EXPECT_EQ(nodes_of_group(of_six, 5), std::nullopt);
}

TEST(Job, RefusesOptionsThatItsRanksCouldNotFollowAlike) {
  const std::vector<std::string> two = {"--id-file", "id", "--rank", "0", "--ranks", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), two.begin(), two.end());
    return refusal(more);
  };
  EXPECT_EQ(with({"--shapes", "wanted.jsonl"}),
            "--shapes and --id-file: a job measures the list of collectives");
  EXPECT_EQ(with({"--families", "gemm"}), "--families gemm and --id-file: a job measures nccl alone");
  EXPECT_EQ(with({"--list"}), "--list and --id-file: leave --id-file out to see a plan");
  EXPECT_EQ(with({"--families", "nccl"}), "accepted");
}

TEST(Job, LetsRankZeroAloneKeepSamplesAndNoRankStopEarly) {
  const CalibrateOptions given = parse_options({"--out", "s.jsonl", "--budget", "1m"});
  const CalibrateOptions first =
      options_of_rank(given, {.rank = 0, .ranks = 2, .device = 0, .id_file = "id"});
  const CalibrateOptions second =
      options_of_rank(given, {.rank = 1, .ranks = 2, .device = 1, .id_file = "id"});
  EXPECT_EQ(first.out, "s.jsonl");
  EXPECT_EQ(second.out, "-");
  EXPECT_EQ(second.device, 1);
  EXPECT_EQ(first.budget_seconds, std::nullopt);
  EXPECT_EQ(second.budget_seconds, std::nullopt);
}

}  // namespace
}  // namespace stagecraft
