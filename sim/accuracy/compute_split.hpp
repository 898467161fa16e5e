// Splits the compute of an iteration by kind of kernel, with operators priced alone.
//
// The breakdown of a run has one number per pass, for GEMMs and softmax together. Their errors have different
// causes, so an attribution prices the operators again.
#pragma once

#include <array>
#include <string_view>

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

enum class KernelFamily : std::uint8_t {
  kProducts,   // GEMMs of linear layers, experts and the head
  kAttention,  // flash kernels, or the batched GEMMs of unfused attention
  kMemory,     // norms, activations, dropout, softmax: memory-bound
  kLoss,
};
inline constexpr std::array<std::string_view, 4> kKernelFamilyNames = {"products", "attention",
                                                                       "memory-bound", "loss"};

using KernelShares = std::array<double, kKernelFamilyNames.size()>;

// They add up to 1; all zero of abstract stages.
[[nodiscard]] KernelShares split_compute(const Scenario& scenario, const ParallelPlan& plan);

}  // namespace stagecraft
