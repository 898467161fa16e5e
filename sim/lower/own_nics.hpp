// In closed form the links of a cluster are nobody's, but a rank cannot send two things at once at the full rate
// of its NICs: where collectives of its passes leave the node and data traffic beside them does, both share one
// link of the rank.
//
//   link     of each pipeline rank, for all NICs of its GPUs together; a second of it per second
//   traffic  of a collective over nodes: its transfer, in which it has the NICs to itself when it is alone. What
//            stays in a node uses none of it, and neither do messages between stages, which queue.
//   limits   as under `network: flow` exposed collectives of a pass follow its compute, and hidden ones are spread
//            over it, or over that of a fused pair; two ranks never meet, nor do the stages that share a node.
//   source   NVIDIA/nccl: a communicator's channels post to a NIC without regard to others, so two collectives
//            come to half of its rate each (recalled)
#pragma once

#include "sim/lower/flow_plan.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/rank_groups.hpp"
#include "topology/collective.hpp"

namespace stagecraft {

// Do collectives of passes meet data traffic at the NICs of a rank? Never on shared links, nor where kinds of
// devices differ, whose prices are mixed.
[[nodiscard]] bool meets_at_nics(const Network& network, const PricingRequest& request);

// The use of the rank's NICs by a collective over `nodes` nodes.
[[nodiscard]] NetworkUse own_nics_use(const Network& network, int pipeline_rank, Category category,
                                      const CollectiveCost& cost, int nodes);

// Adds `transfer` on the NICs of a rank to the traffic of its pass.
void add_to_own_nics(const Network& network, int pipeline_rank, Duration transfer, Traffic& traffic);

// The links of the ranks.
[[nodiscard]] SharedNetwork own_nics_of(int ranks);

}  // namespace stagecraft
