// Samples for `stagecraft calibrate fit` from traces of a training run.
//
// A training run is no benchmark: power and heat limit its clocks, communication overlaps compute, a
// collective waits for its slowest rank, and a kernel may find data of its predecessor in L2. Each sample is
// marked (tags `source`, `load`, `waiting`; setup `clock_policy`), and a fit uses them only where a family
// has no benchmark.
//
//   product      m, n, k, batch, layout and type of each execution of a matrix operator: the sum of its
//                kernels; median and spread over the executions in the steps
//   attention    batch, heads, length, head size, mask and kernel of fused attention, forward and backward,
//                where queries and keys are as many; FLOPs and bytes as the suite counts them
//   kernel       operators bound by memory: norms, softmax, activations, dropout, rotations, embeddings, the
//                loss, Adam, sums and products of tensors, copies and casts; bytes by their tensors
//   collective   size in nccl-tests' convention, ranks, and nodes by the ranks of the group. With traces of
//                several ranks the k-th execution in a step is the shortest of them: the last rank to come
//                does not wait. Receives are left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "calibrate/samples/sample.hpp"
#include "formats/kineto.hpp"

namespace stagecraft {

struct MeasuredTrace {
  std::string name;  // of the file, for messages
  KinetoTrace trace;
  std::vector<std::int32_t> steps;  // counted steps of the trace
};

struct KinetoSamples {
  std::vector<Sample> samples;                 // by family, then by key
  std::map<std::string, std::int64_t> unused;  // why kernels gave no sample, and how many
};

// `gpus_per_node`: 0 takes the number of devices in the first trace. Errors: different devices or NCCL
// versions, two traces of one rank, a device without a name, no samples; empty then. Warning: GEMMs without
// shapes.
[[nodiscard]] KinetoSamples kineto_samples(const std::vector<MeasuredTrace>& traces, int gpus_per_node,
                                           Diagnostics& diagnostics);

}  // namespace stagecraft
