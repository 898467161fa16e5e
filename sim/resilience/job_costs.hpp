// Costs of a job for recovery policies besides its iteration times: its layers one by one, the bytes of its
// states, and transfer rates.
//
//   layer   a transformer's embedding, each of its layers, its head with the loss (and the layers of multi-
//           token prediction); of abstract stages each stage. Times are of one micro-batch on the scenario's
//           tensor and context ranks, tensor collectives and what is recomputed included.
//   state   weights and optimizer states, by the bytes a parameter takes (models/memory.hpp: 2 + 12 for bf16
//           and Adam; 12 where FSDP shards the fp32 weights, which are the masters). A GPU may keep weights in
//           fp8; a checkpoint has them in 16 bit, and a tied word embedding once. Abstract stages tell their
//           gradients, from which the parameters follow.
#pragma once

#include <vector>

#include "base/units.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

struct JobLayer {
  Duration forward{}, backward{};
  // Of all its tensor ranks together: in a pipeline without ZeRO (plain_pipeline.hpp), and in a checkpoint.
  Bytes state{}, saved{};

  friend bool operator==(const JobLayer&, const JobLayer&) = default;
};

struct JobCosts {
  std::vector<JobLayer> layers;
  // The layers on each node group of a cluster with several devices, where `layers` are those of the first
  // group; else empty.
  std::vector<std::vector<JobLayer>> group_layers;
  // Stages of the scenario's own pipeline: the passes of one micro-batch.
  std::vector<Duration> stage_forward, stage_backward;
  Bytes state{};             // of one copy of the model in a checkpoint
  Bytes state_of_gpu{};      // on the fullest GPU after ZeRO sharding, offloaded or not
  Bytes state_of_node{};     // on the fullest node
  Bandwidth node_network{};  // bandwidth into and out of a node, each; 0: unknown
  Bandwidth gpu_to_host{};   // bandwidth of one GPU; 0: unknown
  Duration network_busy{};   // busy time of a node's network per iteration: gradients, parameters, messages
  int replica_gpus = 1;      // tensor · context · pipeline
  int stage_gpus = 1;        // tensor · context
  int gpus_per_node = 1;     // of the kind that has most
};

// throws ScenarioError when the scenario cannot run.
[[nodiscard]] JobCosts job_costs(const Scenario& scenario, const Simulation& simulation);

// The time of a node's states over its network; zero where the network is not known.
[[nodiscard]] Duration peer_transfer(const JobCosts& costs);

}  // namespace stagecraft
