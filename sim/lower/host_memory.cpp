#include "sim/lower/host_memory.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

// Is node `a` nearer to being full than `b`?
bool fuller(const HostMemory& a, const HostMemory& b) {
  const auto share = [](const HostMemory& node) {
    return node.capacity > Bytes(0) ? node.used / node.capacity : 0.0;
  };
  return share(a) != share(b) ? share(a) > share(b) : a.used > b.used;
}

}  // namespace

HostMemory host_memory(std::span<const StageMemory> stages, const ParallelPlan& plan,
                       const ClusterSpec& cluster) {
  HostMemory fullest;
  if (std::ranges::all_of(stages, [](const StageMemory& stage) { return stage.on_host == Bytes(0); }))
    return fullest;
  const int ranks = plan.mesh.size();
  int rank = 0;
  for (const NodeGroup& group : cluster.groups) {
    for (int node = 0; node < group.count && rank < ranks; ++node) {
      HostMemory here{.used = {}, .capacity = group.node.host_memory};
      for (int gpu = 0; gpu < group.node.gpus && rank < ranks; ++gpu, ++rank) {
        const auto stage = static_cast<std::size_t>(plan.mesh.coordinate(rank, Axis::kPipeline));
        if (stage < stages.size()) here.used += stages[stage].on_host;
      }
      if (fuller(here, fullest)) fullest = here;
    }
  }
  return fullest;
}

}  // namespace stagecraft
