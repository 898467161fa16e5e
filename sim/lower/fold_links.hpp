// Few links that slow flows as all links of a cluster do.
//
// Max-min fairness lets all flows grow together until a link is full, which freezes those that cross it, and
// goes on with the others. Only the links matter that can be the first to be full:
//
//   alike      links of one capacity that every route uses alike are full at the same moments and freeze
//              the same flows. One of them stands for all.
//   dominated  a link that every route uses no more, as a share of its capacity, than another link is never
//              fuller than that one, so it is not full before it; and whoever crosses it crosses the other as
//              well, so freezing its flows adds nothing when both are full. It is left out.
//
// Both hold for any rates, so a program runs the same on the folded links (a property test). Where capacities
// change with time, links are alike, or one within the other, when they are at all times.
#pragma once

#include <span>
#include <vector>

#include "sim/program/program.hpp"
#include "topology/collective_flows.hpp"

namespace stagecraft {

struct FoldedLink {
  EdgeId first;   // the lowest of those that it stands for
  int alike = 1;  // how many
  friend bool operator==(const FoldedLink&, const FoldedLink&) = default;
};

struct FoldedLinks {
  std::vector<FoldedLink> links;             // ascending by `first`; LinkId is the place in this list
  std::vector<std::vector<LinkUse>> routes;  // as given, over these links
};

// Capacities of each link, by EdgeId, in one epoch after the other: one entry where they never change.
using LinkEpochs = std::vector<std::vector<Bandwidth>>;

// `routes`: unit flows over each link, ascending by link and above 0. Numbers are taken to 40 bits, so that
// sums in another order do not make links unlike.
[[nodiscard]] FoldedLinks fold_links(const LinkEpochs& capacity,
                                     std::span<const std::vector<LinkLoad>> routes);

// Leaves a program the links that matter. Before, its links are those of the cluster, by EdgeId.
//   returns  for each link that is left, which one of the cluster it is and how many it stands for
std::vector<FoldedLink> fold_links(Program& program);

}  // namespace stagecraft
