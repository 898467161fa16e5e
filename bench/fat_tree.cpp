#include "bench/fat_tree.hpp"

#include <string>

#include "base/ceil_div.hpp"

namespace stagecraft {

FatTree::FatTree(ProgramBuilder& builder, int hosts) {
  const auto link = [&](const std::string& name) {
    return builder.add_link({.name = name, .capacity = kLink});
  };
  const int leaves = ceil_div(hosts, kHostsPerLeaf);
  for (int host = 0; host < hosts; ++host) {
    up_.push_back(link("host " + std::to_string(host) + " -> leaf"));
    down_.push_back(link("leaf -> host " + std::to_string(host)));
  }
  for (int leaf = 0; leaf < leaves; ++leaf)
    for (int spine = 0; spine < kSpines; ++spine) {
      const std::string to = "leaf " + std::to_string(leaf), from = "spine " + std::to_string(spine);
      to_spine_.push_back(link(to + " -> " + from));
      from_spine_.push_back(link(from + " -> " + to));
    }
}

std::vector<LinkUse> FatTree::route(int from, int to) const {
  const auto source = static_cast<std::size_t>(from), target = static_cast<std::size_t>(to);
  std::vector<LinkUse> uses{{.link = up_[source]}, {.link = down_[target]}};
  const std::size_t leaf = source / kHostsPerLeaf, other = target / kHostsPerLeaf;
  if (leaf == other) return uses;
  // Knuth's multiplicative hash (TAOCP 3, section 6.4) of the pair; its upper bits are the good ones.
  const auto pair = static_cast<std::uint32_t>(source << 16 | target);
  const std::size_t spine = (pair * 2654435761U >> 16) % kSpines;
  uses.push_back({.link = to_spine_[leaf * kSpines + spine]});
  uses.push_back({.link = from_spine_[other * kSpines + spine]});
  return uses;
}

}  // namespace stagecraft
