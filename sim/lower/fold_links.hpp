// Reduces a cluster to the few links that decide the speed of its flows.
//
// Max-min fairness raises all flows together until a link is full, freezes the flows across that link, and
// goes on with the others. Only links that can fill up first matter:
//
//   alike      links of one capacity that every route uses alike are full at the same moments and freeze
//              the same flows. One of them stands for all.
//   dominated  a link that every route uses no more, as a share of its capacity, than another link is never
//              fuller than that one, so it is not full before it; and whoever crosses it crosses the other as
//              well, so freezing its flows adds nothing when both are full. It is left out.
//
// Both hold for any rates, so a program runs the same on the folded links (a property test). Where capacities
// change with time, both relations must hold at all times.
#pragma once

#include <span>
#include <vector>

#include "sim/program/program.hpp"
#include "topology/collective_flows.hpp"

namespace stagecraft {

struct FoldedLink {
  EdgeId first;   // the lowest of the links that it stands for
  int alike = 1;  // the number of links that it stands for
  friend bool operator==(const FoldedLink&, const FoldedLink&) = default;
};

struct FoldedLinks {
  std::vector<FoldedLink> links;             // ascending by `first`; LinkId is the place in this list
  std::vector<std::vector<LinkUse>> routes;  // as given, over these links
};

// Capacities of each link, by EdgeId, in one epoch after the other: one entry where they never change.
using LinkEpochs = std::vector<std::vector<Bandwidth>>;

// `routes`: unit flows over each link, ascending by link and above 0. Loads are compared at 40 bits, so that
// another order of summing does not tell identical links apart.
[[nodiscard]] FoldedLinks fold_links(const LinkEpochs& capacity,
                                     std::span<const std::vector<LinkLoad>> routes);

// Replaces the links of a program, which are those of the cluster by EdgeId, by the folded ones.
//   returns  for each link that is left, which one of the cluster it is and how many it stands for
std::vector<FoldedLink> fold_links(Program& program);

}  // namespace stagecraft
