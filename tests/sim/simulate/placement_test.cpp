// One rank is simulated for all its replicas. Where these do not lie alike, the slowest of them sets the
// time.
#include <gtest/gtest.h>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;

// System: three nodes of four GPUs, four pipeline ranks of three replicas: rank 0 is GPU 0-2, rank 1 is GPU
// 3-5. So the first replica sends from GPU 0 to GPU 3 over NVLink, the others from 1 to 4 and 2 to 5 over the
// network. Stages take F 10, I 10, W 10 ms and send 80 MB; one micro-batch for each replica. Expectations:
// over the network 1 ms + 80 MB / 10 GB/s = 9 ms, over NVLink far less. Replicas wait for each other at the
// end, so each of the six messages counts with 9 ms: 4 * 30 + 6 * 9 = 174 ms.
TEST(UnlikeReplicas, SendAsSlowlyAsTheSlowest) {
  const Report report =
      simulate(scenario_of("stagecraft: 1\n"
                           "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: "
                           "10 ms, activation: 80 MB}\n"
                           "cluster:\n"
                           "  node: {device: toy, gpus: 4, nvlink: 100 GB/s, nvlink_latency: 1 us, nics: 4, "
                           "nic_bandwidth: 10 GB/s,"
                           " pcie: 100 GB/s}\n"
                           "  nodes: 3\n"
                           "  fabric: {kind: single-switch, point_to_point_latency: 1 ms}\n"
                           "parallelism: {pipeline: 4, data: 3}\n"
                           "training: {global_batch_size: 3}\n"));
  EXPECT_EQ(report.iteration_time, 174ms);
}

Duration tensor_time(const char* cluster) {
  const Scenario scenario = scenario_of(std::string("stagecraft: 1\n"
                                                    "model: {family: gpt, layers: 8, hidden: 1536, heads: "
                                                    "12, vocab: 51200, max_sequence_length: 1024}\n"
                                                    "cluster: {node: dgx-a100-80gb, ") +
                                        cluster +
                                        "}\n"
                                        "parallelism: {tensor: 3}\n"
                                        "training: {global_batch_size: 48}\n");
  return simulate_in_full(scenario).prices.stages.front().forward.of(Category::kTensorComm);
}

// Three ranks of a tensor group fit into a node of eight twice; GPU 6, 7 and 8 are a group over two nodes.
// Each of the 16 collectives of 8 layers pays the fabric's 60 us there, and its bytes go over NICs.
TEST(UnlikeReplicas, TalkAsSlowlyAsTheTensorGroupOverTwoNodes) {
  EXPECT_GT(tensor_time("nodes: 3"), tensor_time("gpus: 6") + 16 * 60us);
}

// System: two nodes with one GPU each; the second has a tenth of the first one's network. Two replicas reduce
// 400 MB. Expectations: a ring of two sends 400 MB at the slower rate: 400 ms at 1 GB/s, after F, I and W of
// 10 ms.
TEST(UnlikeNodes, ReduceAsSlowlyAsTheSlowest) {
  for (const bool slow_first : {true, false}) {
    const std::string slow =
        "{node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 1 GB/s, pcie: 100 GB/s}, nodes: 1}";
    const std::string fast =
        "{node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}, nodes: 1}";
    const Report report =
        simulate(scenario_of("stagecraft: 1\n"
                             "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, "
                             "weight_gradient: 10 ms, gradient: 400 MB}\n"
                             "cluster:\n"
                             "  nodes: [" +
                             (slow_first ? slow + ", " + fast : fast + ", " + slow) +
                             "]\n"
                             "  fabric: {kind: single-switch}\n"
                             "parallelism: {data: 2}\n"
                             "training: {global_batch_size: 2}\n"));
    EXPECT_EQ(report.iteration_time, 430ms) << slow_first;
  }
}

}  // namespace
}  // namespace stagecraft
