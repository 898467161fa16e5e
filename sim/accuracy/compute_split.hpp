// What the compute of an iteration consists of, by kind of kernel, as its operators are priced alone.
//
// The breakdown of a run knows passes; a product and a softmax inside one pass are one number there. Errors
// of the two have different reasons, so an attribution asks the operators again.
#pragma once

#include <array>
#include <string_view>

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

enum class KernelFamily : std::uint8_t {
  kProducts,   // of linear layers, experts and the head
  kAttention,  // flash kernels, or the batched products of unfused attention
  kMemory,     // norms, activations, dropout, softmax: memory-bound
  kLoss,
};
inline constexpr std::array<std::string_view, 4> kKernelFamilyNames = {"products", "attention",
                                                                       "memory-bound", "loss"};

using KernelShares = std::array<double, kKernelFamilyNames.size()>;

// They add up to 1; all zero of abstract stages.
[[nodiscard]] KernelShares split_compute(const Scenario& scenario, const ParallelPlan& plan);

}  // namespace stagecraft
