// Exceptions to the rule of links: resolution of names, and the changes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/cluster_spec.hpp"
#include "topology/fabric_graph.hpp"

namespace stagecraft {

// Does `name` match? `*` stands for any text, the empty one as well; everything else for itself.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);

// For each link of `graph` the exception that names it (an index into `exceptions`), or nullopt. An exception
// may include the other direction of a cable.
struct LinkChoice {
  std::vector<std::optional<std::size_t>> by_link;
  std::vector<std::size_t> count;  // by exception: number of links with its name, one direction
  // Two exceptions that mean the same link.
  struct Clash {
    std::size_t first = 0, second = 0;
    EdgeId link;
  };
  std::vector<Clash> clashes;  // at most one per pair of exceptions
};
[[nodiscard]] LinkChoice choose_links(const FabricGraph& graph, const std::vector<LinkException>& exceptions);

// Changes the chosen links and drops the missing ones; returns the ends of the missing links.
std::vector<VertexId> apply_links(FabricGraph& graph, const std::vector<LinkException>& exceptions);

}  // namespace stagecraft
