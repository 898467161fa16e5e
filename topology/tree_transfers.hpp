// The all-reduces whose bytes go through trees or through switches that add.
#pragma once

#include <vector>

#include "topology/collective_transfers.hpp"

namespace stagecraft {

// S/2 up and down each edge of both trees over the nodes.
void add_double_tree(std::vector<Transfer>& transfers, const MembersByNode& nodes, double size);

[[nodiscard]] std::vector<Transfer> tree_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                   double size);
[[nodiscard]] std::vector<Transfer> nvls_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                   double size);
[[nodiscard]] std::vector<Transfer> nvls_tree_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                        double size);
[[nodiscard]] std::vector<Transfer> collnet_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                      double size);

}  // namespace stagecraft
