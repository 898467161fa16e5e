// A trace of PyTorch's profiler (Kineto's Chrome JSON): the kernels of one GPU, and the operators that
// launched them.
//
// Read as a stream, one event at a time: memory grows with the kernels and operators that are kept, not with
// the text. A kernel is tied to its operator by two ids: `correlation` leads to the call that launched it,
// `External id` from there to the operator around the call. Old traces give an external id that is none, so
// an operator counts only if its thread was in it when the call was made.
//
// A kernel belongs to the ProfilerStep in which the host launched it, whenever the device came to it.
//
//   times    microseconds in the file, as integers or with decimals; here whole nanoseconds since the first
//            slice that is kept, exact
//   refused  text that is no JSON, a file without traceEvents, slices without a time, negative times,
//            nesting beyond 64 levels; each with its line
//   source   pytorch/kineto libkineto/src/output_json.cpp, pytorch/pytorch torch/csrc/profiler/util.h for the
//            names of arguments; Kernel, Memcpy, Runtime, Operator are those of PyTorch 1.8
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"

namespace stagecraft {

enum class DeviceWork : std::uint8_t { kKernel, kCopy, kSet };

// Arguments of an operator, where shapes were recorded (record_shapes=True).
struct KinetoInputs {
  std::vector<std::vector<std::int64_t>> dims;     // extents of tensors; empty for other arguments and lists
  std::vector<std::vector<std::int64_t>> strides;  // strides in newer traces, otherwise empty
  std::vector<std::string> types;                  // "c10::BFloat16", "float", "Scalar", "TensorList", ""
  // Elements of all tensors of a list; 0: no list, or one of more than 30.
  std::vector<std::int64_t> list_elements;
  std::vector<std::string> values;  // values of attention in newer traces: "True", "0.", ""; otherwise empty

  friend bool operator==(const KinetoInputs&, const KinetoInputs&) = default;
};

struct KinetoOp {
  std::string name;  // "aten::mm"
  KinetoInputs inputs;

  friend bool operator==(const KinetoOp&, const KinetoOp&) = default;
};

// ProcessGroupNCCL's record of a collective or message.
struct KinetoCollective {
  std::string name;  // "allreduce", "_allgather_base", "send"
  std::int64_t in_elements = 0, out_elements = 0;
  int group_size = 0;
  std::string dtype;              // "BFloat16"
  std::string group;              // "Process Group Name"
  std::string group_description;  // "TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp"; empty in old traces
  std::vector<int> ranks;         // empty where the file leaves some out

  friend bool operator==(const KinetoCollective&, const KinetoCollective&) = default;
};

struct KinetoKernel {
  DeviceWork work = DeviceWork::kKernel;
  std::uint32_t name = 0;  // index into names
  Duration start{}, length{};
  int device = 0;
  std::int64_t stream = 0;
  std::int64_t call = -1;        // the execution of its operator, equal for all kernels of it; -1: not known
  std::int32_t op = -1;          // index into ops, -1: not known
  std::int32_t collective = -1;  // index into collectives, -1: none, or nothing is said
  std::int32_t step = -1;        // index into steps, -1: launched in none
  bool of_optimizer = false;     // launched inside an `Optimizer.step` annotation
  bool of_backward = false;      // its operator ran on a thread of the autograd engine
};

struct KinetoStep {
  std::int64_t number = 0;  // number in ProfilerStep#
  Duration start{}, length{};
};

struct KinetoTrace {
  std::vector<std::string> names;             // names of kernels and copies
  std::vector<KinetoOp> ops;                  // distinct ones that launched a kernel
  std::vector<KinetoCollective> collectives;  // distinct ones
  std::vector<KinetoKernel> kernels;          // by start, then stream
  std::vector<KinetoStep> steps;              // by start
  std::optional<int> rank, world_size;
  std::string device;        // "NVIDIA H100 80GB HBM3"; of the device that ran the first kernel
  int visible_devices = 0;   // listed under deviceProperties
  std::string nccl_version;  // "2.21.5"
  std::string date;          // ISO, of the first slice; empty where the file has no absolute time
  bool has_shapes = false;   // some operator with its shapes

  [[nodiscard]] const std::string& name_of(const KinetoKernel& kernel) const { return names[kernel.name]; }
  // nullptr where it is not known.
  [[nodiscard]] const KinetoOp* op_of(const KinetoKernel& kernel) const {
    return kernel.op < 0 ? nullptr : &ops[static_cast<std::size_t>(kernel.op)];
  }
};

// Reads to the end of `in`; `name` is used in places only. Warned of: slices without a duration, which count
// as instants. nullopt if something was refused.
[[nodiscard]] std::optional<KinetoTrace> read_kineto(std::istream& in, const std::string& name,
                                                     Diagnostics& diagnostics);

// The measured steps: those selected by number, otherwise all with kernels except the first, which warms up.
// A single step is used, with a warning. A trace without steps gets one step over all its kernels (number
// -1), with a warning. Returns indices into steps, ascending; nullopt after reporting a missing step, or a
// trace without kernels.
[[nodiscard]] std::optional<std::vector<std::int32_t>> measured_steps(KinetoTrace& trace,
                                                                      const std::vector<std::int64_t>& asked,
                                                                      const std::string& name,
                                                                      Diagnostics& diagnostics);

}  // namespace stagecraft
