// Prices of what crosses a wire: messages between stages and collectives along an axis of the mesh.
#pragma once

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster.hpp"
#include "topology/collective.hpp"

namespace stagecraft {

struct Network {
  const Cluster& cluster;
  const HardwareProfile& profile;
  const ParallelPlan& plan;
};

struct CollectiveJob {
  CollectiveKind kind;
  Bytes size;  // nccl-tests' convention
  Category category;
};

// The first GPU of a pipeline rank: tensor and data coordinate 0. It stands for all, which lie alike.
[[nodiscard]] int pipeline_member(const ParallelPlan& plan, int pipeline_rank);

// GPUs of the node of `member` that belong to the same pipeline rank: they send, and reduce, at the same
// time.
[[nodiscard]] int same_stage_on_node(const Cluster& cluster, const ParallelPlan& plan, int member);

[[nodiscard]] PassPrice group_price(const Network& network, int member, Axis axis, const CollectiveJob& job);

// Message of `size` bytes per GPU over the boundary from global stage `stage` to the next, both ways.
[[nodiscard]] EdgePrice edge_price(const Cluster& cluster, const ParallelPlan& plan, int stage, Bytes size);

}  // namespace stagecraft
