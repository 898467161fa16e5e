// Time that the host takes to launch the operators of a pass: the pass lasts at least as long
// (price_operators.hpp).
//
//   bare       kernels x launch
//   framework  slowdown x (operators x operator_overhead + further launches x kernel_overhead)
// The longer of the two counts. An operator is one entry of the list: a call of a module or function, with
// its part of autograd. A collective counts as often as it runs. Further launches are an operator's kernels
// beyond the first, one for each expert of a grouped GEMM. Operators inside a CUDA graph cost nothing.
//   source  launch, slowdown: the profile; overheads: the software's preset, fitted on the iterations of small
//           models (calibrate/validation/megatron_tests_h100.yaml). Grouped products launch a kernel for each
//           expert: NVIDIA/Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization, section 1.
#pragma once

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/operators.hpp"
#include "sim/plan/specs.hpp"

namespace stagecraft {

struct HostCosts {
  Duration operator_overhead{}, kernel_overhead{};
  CudaGraphs graphs = CudaGraphs::kNone;
};
[[nodiscard]] HostCosts host_costs(const OptionsSpec& options);

[[nodiscard]] Duration host_time(const Ops& ops, const HostModel& host, const HostCosts& costs);

}  // namespace stagecraft
