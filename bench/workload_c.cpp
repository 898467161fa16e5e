#include "bench/workload_c.hpp"

#include <random>
#include <vector>

#include "base/units.hpp"
#include "bench/fat_tree.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kSmallest = 1'000'000;
constexpr std::int64_t kLargest = 64'000'000;

}  // namespace

std::size_t task_count(const WorkloadC& workload) {
  return static_cast<std::size_t>(workload.hosts) * static_cast<std::size_t>(workload.messages);
}

Program build(const WorkloadC& workload) {
  ProgramBuilder builder;
  builder.reserve(task_count(workload), task_count(workload));
  const LabelId label = builder.add_label({.name = "message", .parts = {}});
  const FatTree tree(builder, workload.hosts);
  for (int host = 0; host < workload.hosts; ++host) {
    // The generator's own numbers, because the distributions of the library differ between libraries.
    std::mt19937 random(static_cast<std::uint32_t>(host));
    const ResourceId network =
        builder.add_resource({.kind = ResourceKind::kConcurrent, .rank = host, .name = "network"});
    std::vector<ProgramBuilder::Handle> sent;
    for (int message = 0; message < workload.messages; ++message) {
      const Bytes size(kSmallest + static_cast<std::int64_t>(random()) % (kLargest - kSmallest + 1));
      const int step = 1 + static_cast<int>(random() % static_cast<std::uint32_t>(workload.hosts - 1));
      const std::vector<LinkUse> uses = tree.route(host, (host + step) % workload.hosts);
      const Duration transfer = size / FatTree::kLink;
      const Duration latency = static_cast<std::int64_t>(uses.size()) * FatTree::kLatency;
      sent.push_back(builder.add_task(network, latency + transfer, label, message));
      builder.add_flow(sent.back(), transfer, FatTree::kLink, builder.add_route(uses));
      if (message >= workload.outstanding)
        builder.add_dependency(sent[static_cast<std::size_t>(message - workload.outstanding)], sent.back());
    }
  }
  return std::move(builder).build();
}

}  // namespace stagecraft
