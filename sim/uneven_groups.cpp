#include "sim/uneven_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace stagecraft {
namespace {

// The ranks of a group on the emptiest of its domains and on the fullest.
struct Parts {
  int least = 0, most = 0;
};

Parts parts_of(const std::vector<int>& ranks, int domain_gpus) {
  Parts parts{.least = static_cast<int>(ranks.size())};
  for (auto first = ranks.begin(); first != ranks.end();) {
    const int end = (*first / domain_gpus + 1) * domain_gpus;
    const auto next = std::lower_bound(first, ranks.end(), end);
    const int here = static_cast<int>(next - first);
    parts = {std::min(parts.least, here), std::max(parts.most, here)};
    first = next;
  }
  return parts;
}

// The group with the least in a domain that has more in another; nullopt where all are even.
std::optional<Parts> worst_of(const RankMesh& mesh, Axis axis, int domain_gpus) {
  std::optional<Parts> worst;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    if (mesh.coordinate(rank, axis) != 0) continue;
    const Parts parts = parts_of(mesh.group(rank, axis), domain_gpus);
    if (parts.least < parts.most && (!worst || parts.least < worst->least)) worst = parts;
  }
  return worst;
}

std::optional<std::string> word_on(const RankMesh& mesh, Axis axis, const NodeSpec& node) {
  const std::optional<Parts> worst = worst_of(mesh, axis, node.gpus * node.nvlink_domain);
  if (!worst || (axis == Axis::kData && 2 * worst->least >= worst->most)) return std::nullopt;
  std::string word = fmt::format(
      "parallelism.{}: groups of {} lie unevenly over NVLink domains of {} GPUs, {} beside {} at "
      "worst, and wait for the NICs of the fewest",
      kAxisNames[static_cast<std::size_t>(axis)], mesh.degree(axis), node.gpus * node.nvlink_domain,
      worst->least, worst->most);
  for (int domain = node.nvlink_domain - 1; 2 * domain >= node.nvlink_domain; --domain) {
    if (worst_of(mesh, axis, node.gpus * domain)) continue;
    return word +
           fmt::format("; {} of the {} nodes of a domain (cluster.node.nvlink_domain: {}) make them even",
                       domain, node.nvlink_domain, domain);
  }
  return word;
}

}  // namespace

std::optional<std::string> word_on_uneven_groups(const Scenario& scenario, const ParallelPlan& plan) {
  if (!scenario.cluster || scenario.cluster->groups.size() != 1) return std::nullopt;
  const NodeSpec& node = scenario.cluster->groups.front().node;
  if (node.nvlink_domain == 1) return std::nullopt;
  if (auto word = word_on(plan.expert_mesh, Axis::kExpert, node)) return word;
  for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kData})
    if (auto word = word_on(plan.mesh, axis, node)) return word;
  return std::nullopt;
}

}  // namespace stagecraft
