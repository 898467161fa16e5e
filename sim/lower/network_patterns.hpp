// Link loads of the collectives and messages of a pipeline rank, with all groups of a kind together.
//
//   a link counts payload / efficiency, with the efficiency that the closed form takes for links in a node
//   and between nodes: what moves alone then lasts as long as the closed form says.
//   requires  network.patterns.
#pragma once

#include <vector>

#include "sim/lower/rank_groups.hpp"
#include "sim/lower/traffic.hpp"

namespace stagecraft {

// Pattern of a collective that every group of a kind of `pipeline_rank` runs, and `cost` prices. One member
// sends bus_factor(kind, n) * S bytes.
[[nodiscard]] PatternId collective_pattern(const Network& network, int pipeline_rank, RankGroup group,
                                           CollectiveKind kind, const CollectiveCost& cost);

// Every GPU of the pipeline rank `from` sends a message to its counterpart on `to`.
[[nodiscard]] PatternId message_pattern(const Network& network, int from, int to, const CollectiveCost& cost);

// Every GPU of pipeline rank `from` all-reduces with its counterpart on `to`.
[[nodiscard]] PatternId pair_pattern(const Network& network, int from, int to, const CollectiveCost& cost);

// The network use behind `cost`, in the form that prices store. `sent`: bytes of one member.
[[nodiscard]] NetworkUse network_use(Category category, const CollectiveCost& cost, PatternId pattern,
                                     double sent);

}  // namespace stagecraft
