// What traces of a training run measured, as samples for `stagecraft calibrate fit`.
//
// A training run is no benchmark: clocks are what power and heat left, communication ran beside compute, and
// a collective waits for its slowest rank. Each sample says so (tags `source`, `load`, `waiting`; setup
// `clock_policy`), and a fit takes such products only where there are none of a benchmark.
//
//   product      m, n, k, batch, layout and type of each execution of a matrix operator: the sum of its
//                kernels; median and spread over the executions in the steps
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
  std::vector<std::int32_t> steps;  // of the trace that count
};

struct KinetoSamples {
  std::vector<Sample> samples;                 // products, then collectives; each by its key
  std::map<std::string, std::int64_t> unused;  // why kernels gave no sample, and how many
};

// `gpus_per_node`: 0 takes the number of devices that the first trace lists. Refused: traces of unlike
// devices or NCCL versions, a device without a name, nothing that makes a sample; empty then. Warned of:
// products without shapes.
[[nodiscard]] KinetoSamples kineto_samples(const std::vector<MeasuredTrace>& traces, int gpus_per_node,
                                           Diagnostics& diagnostics);

}  // namespace stagecraft
