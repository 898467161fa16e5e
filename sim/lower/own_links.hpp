// In closed form the links of a cluster are nobody's, but a rank cannot send two things at once at the full rate
// of its NICs, nor of its NVLinks: where collectives of its passes and data traffic beside them use the same of
// them, both share that link of the rank.
//
//   links    two of each pipeline rank: the NICs of its GPUs together, and their NVLinks (PCIe where there are
//            none); a second of each per second
//   traffic  of a collective on the NICs: how long they are busy with it alone (CollectiveCost::between_nodes); on
//            the NVLinks the same of `in_node`. Messages between stages use neither; they queue.
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

// Do both leave the node, or does data traffic stay in one where passes communicate as well? Data traffic that
// leaves it is too slow to fill NVLinks, and without links a search is half as fast again. Never on shared links,
// nor where kinds of devices differ, whose prices are mixed.
[[nodiscard]] bool meets_at_own_links(const Network& network, const PricingRequest& request);

// The use of the rank's links by a collective.
[[nodiscard]] NetworkUse own_links_use(const Network& network, int pipeline_rank, Category category,
                                       const CollectiveCost& cost);

// Adds `times` such collectives to the traffic of a pass of the rank.
void add_to_own_links(const Network& network, int pipeline_rank, const CollectiveCost& cost,
                      std::int64_t times, Traffic& traffic);

// The links of the ranks.
[[nodiscard]] SharedNetwork own_links_of(int ranks);

}  // namespace stagecraft
