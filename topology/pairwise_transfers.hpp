// The algorithms that look at ranks one by one: messages, all-to-all, recursive halving and doubling, PAT.
#pragma once

#include <vector>

#include "topology/collective_transfers.hpp"

namespace stagecraft {

[[nodiscard]] std::vector<Transfer> direct_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                     double size);
[[nodiscard]] std::vector<Transfer> halving_doubling_transfers(const MembersByNode& nodes,
                                                               CollectiveKind kind, double size);
[[nodiscard]] std::vector<Transfer> pat_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                  double size);

}  // namespace stagecraft
