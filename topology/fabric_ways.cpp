#include "topology/fabric_ways.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = (hash ^ value) + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

Ways::Choices Ways::choices(int count, int level) const {
  SC_CHECK(count > 0, "there is something to choose");
  if (routing_ == Routing::kAdaptive) return {.first = 0, .last = count, .share = 1.0 / count};
  const auto one =
      static_cast<int>(mixed(hash_, static_cast<std::uint64_t>(level)) % static_cast<std::uint64_t>(count));
  return {.first = one, .last = one + 1, .share = 1};
}

void Ways::hop(VertexId from, VertexId to, double share) {
  const auto link = graph_->find(from, to);
  if (!link) broken_ = true;
  if (!broken_) shares_.push_back({.link = *link, .share = share});
}

void Ways::walk(const std::vector<VertexId>& vertices, double share) {
  for (std::size_t i = 0; i + 1 < vertices.size(); ++i) hop(vertices[i], vertices[i + 1], share);
}

}  // namespace stagecraft
