// Mean number of ranks or nodes that a token goes to, when it is sent once to each that holds one of its
// experts.
//
// A token chooses G_t of G groups of experts, then K of their M = G_t E/G experts, all choices equally
// likely. Holder i of n has the experts from i E/n to (i + 1) E/n. It is missed with the probability sum over
// x of P(x) C(M - x, K) / C(M, K), where x counts its experts in the chosen groups. So the token goes to
//   n (1 - C(E - E/n, K) / C(E, K))            without groups: x = E/n,
//   n G_t/G (1 - C(M - E/n, K) / C(M, K))      where a group has whole holders: x = E/n or 0,
//   n (1 - sum_j P(j) C(M - j E/G, K) / C(M, K))   where a holder has q whole groups: of those j are chosen,
//                                              P(j) = C(q, j) C(G - q, G_t - j) / C(G, G_t),
// and the sum over holders where neither divides the other: such a holder has parts of two groups beside
// whole ones.
//   assumed  no choice is likelier than another. Groups that are chosen by the scores of their best experts
//            (DeepSeek-V3) have one of them chosen more often than this says: they are missed less.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace stagecraft {

struct TokenChoice {
  std::int64_t count = 1;       // E
  std::int64_t top_k = 1;       // K
  std::int64_t groups = 1;      // G
  std::int64_t top_groups = 1;  // G_t

  friend bool operator==(const TokenChoice&, const TokenChoice&) = default;
};

//   returns  at most min(holders, K); 1 of one holder, K of E holders.
//   throws   InternalError where there are more holders than experts, or what a loader of models refuses.
[[nodiscard]] double expected_holders(const TokenChoice& choice, std::int64_t holders);

// An exchange that sends a token once to each node: `each` bytes if every token went to one node. The
// placement gives the number of nodes.
struct NodeCopies {
  TokenChoice choice;
  Bytes each{};

  // Bytes that a rank sends to `nodes` nodes, its own included.
  [[nodiscard]] Bytes over(std::int64_t nodes) const;
  friend bool operator==(const NodeCopies&, const NodeCopies&) = default;
};

}  // namespace stagecraft
