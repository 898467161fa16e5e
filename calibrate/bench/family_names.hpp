// The families of measurements by name: what --families takes and --help prints. Needs no CUDA.
#pragma once

namespace stagecraft {

struct FamilyName {
  const char* name;
  const char* measures;
};

constexpr FamilyName kFamilyNames[] = {
    {"gemm", "matrix products by cuBLASLt, in bursts"},
    {"sustained", "the matrix products of a layer at the power limit, 13 s each"},
    {"kernel", "fused and unfused memory-bound kernels, forward and backward"},
    {"attention", "cuDNN's fused attention, forward and backward"},
    {"system", "memory and host copies, launches, graphs, allocations"},
    {"interference", "matrix products beside a kernel that holds multiprocessors"},
    {"nccl", "collectives over the GPUs of this host, or of a job's hosts"},
};

}  // namespace stagecraft
