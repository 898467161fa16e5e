// Small traces of PyTorch's profiler, written down by hand.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "formats/kineto.hpp"

namespace stagecraft {

// Events of one rank, in microseconds. A kernel is launched where it starts, unless said otherwise.
class TraceText {
 public:
  // ProfilerStep#`number`
  TraceText& step(int number, int start, int length) {
    return slice("user_annotation", fmt::format("ProfilerStep#{}", number), start, length, "");
  }
  // A host operator, and one kernel that it launches when it begins. `arguments` are of the operator.
  TraceText& kernel(const std::string& op, const std::string& arguments, const std::string& kernel, int start,
                    int length) {
    ++id_;
    slice("cpu_op", op, start, 1, fmt::format(R"("External id": {}{})", id_, with_comma(arguments)));
    return launched(kernel, start, length, "");
  }
  // Another kernel of the same operator.
  TraceText& again(const std::string& kernel, int start, int length) {
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {{"External id": {}, "correlation": {}, "stream": 7, "device": 0}}}})",
        kernel, start, length, id_, 1000 + id_));
    return *this;
  }
  // A kernel of NCCL with what it says of itself.
  TraceText& collective(const std::string& name, const std::string& arguments, int start, int length) {
    ++id_;
    return launched(fmt::format("ncclDevKernel_{}", name), start, length, with_comma(arguments), 20);
  }
  TraceText& raw(std::string event) {
    events_.push_back(std::move(event));
    return *this;
  }
  TraceText& head(std::string text) {
    head_ = std::move(text);
    return *this;
  }

  [[nodiscard]] std::string str() const {
    return fmt::format("{{{},\n\"traceEvents\": [\n{}\n]}}\n", head_, join(events_, ",\n"));
  }

 private:
  static std::string with_comma(const std::string& arguments) {
    return arguments.empty() ? std::string() : ", " + arguments;
  }
  TraceText& slice(const std::string& category, const std::string& name, int start, int length,
                   const std::string& arguments) {
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{{}}}}})",
        category, name, start, length, arguments));
    return *this;
  }
  TraceText& launched(const std::string& kernel, int start, int length, const std::string& arguments,
                      int stream = 7) {
    slice("cuda_runtime", "cudaLaunchKernel", start, 1,
          fmt::format(R"("External id": {}, "correlation": {})", id_, 1000 + id_));
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {}, "dur": {}, "args": {{"External id": {}, "correlation": {}, "stream": {}, "device": 0{}}}}})",
        kernel, stream, start, length, id_, 1000 + id_, stream, arguments));
    return *this;
  }

  std::string head_ =
      R"("schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 4, "nccl_version": "2.21.5"}, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}, {"id": 1, "name": "NVIDIA H100 80GB HBM3"}])";
  std::vector<std::string> events_;
  int id_ = 0;
};

inline std::optional<KinetoTrace> read_text(const std::string& text, Diagnostics& diagnostics) {
  std::istringstream in(text);
  return read_kineto(in, "t.json", diagnostics);
}

// Arguments of a product of bf16 matrices as PyTorch lays them out: A (m, k) with rows, B (k, n) the
// transpose of a weight.
inline std::string product_arguments(int m, int n, int k) {
  return fmt::format(
      R"("Input Dims": [[{0}, {2}], [{2}, {1}]], "Input Strides": [[{2}, 1], [1, {2}]], "Input type": ["c10::BFloat16", "c10::BFloat16"])",
      m, n, k);
}

inline std::string collective_arguments(const std::string& name, std::int64_t in, std::int64_t out,
                                        const std::string& ranks = "[0, 1]") {
  return fmt::format(
      R"("Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": 2, "dtype": "BFloat16", "Process Group Name": "1", "Process Group Ranks": "{}")",
      name, in, out, ranks);
}

}  // namespace stagecraft
