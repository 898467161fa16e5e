#include "sim/lower/host_time.hpp"

#include <algorithm>
#include <cstdint>

namespace stagecraft {

namespace {

bool in_graph(const Op& op, CudaGraphs graphs) {
  return graphs == CudaGraphs::kIteration || (graphs == CudaGraphs::kLayers && !op.routed);
}

// Kernel launches of an operator beyond the first.
std::int64_t further_launches(const Op& op) {
  const std::int64_t problems = op.kind == OpKind::kGroupedGemm && !op.joined ? op.gemm.batch : 1;
  return std::max({std::int64_t{op.kernels}, std::int64_t{op.host_launches}, problems}) - 1;
}

}  // namespace

HostCosts host_costs(const OptionsSpec& options) {
  return {.operator_overhead = options.rules.operator_overhead,
          .kernel_overhead = options.rules.kernel_overhead,
          .graphs = options.cuda_graphs};
}

Duration host_time(const Ops& ops, const HostModel& host, const HostCosts& costs) {
  std::int64_t kernels = 0, operators = 0, further = 0;
  for (const Op& op : ops) {
    if (in_graph(op, costs.graphs)) continue;
    kernels += op.kernels;
    const bool runs_often = op.kind == OpKind::kCollective;
    operators += runs_often ? op.kernels : 1;
    if (!runs_often) further += further_launches(op);
  }
  const Duration framework = costs.operator_overhead * operators + costs.kernel_overhead * further;
  return std::max(host.launch.value * kernels, from_seconds(to_seconds(framework) * host.pace()));
}

}  // namespace stagecraft
