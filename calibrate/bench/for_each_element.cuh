// Work on arrays of any length by a grid of any size.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stagecraft {

// Calls visit(i) for this thread's part of [0, count): one i in as many as the grid has threads, so that
// neighbouring threads are at neighbouring elements.
template <class Visit>
__device__ inline void for_each_element(std::int64_t count, const Visit& visit) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    visit(i);
}

}  // namespace stagecraft
