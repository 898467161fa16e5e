// One matrix product by cuBLASLt, the way frameworks call it: row-major C[m,n] = A[m,k] B[k,n], the library's
// first heuristic, 32 MiB of workspace.
//
// Layouts carry the names of cuBLAS, which sees the transposed problem and so B first: TN is the forward pass
// (weight[n,k], tokens[m,k]), NN the input gradient (weight[k,n]), NT the weight gradient (A given as [k,m]).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "calibrate/bench/harness.hpp"

namespace stagecraft {

enum class GemmLayout { kTN, kNN, kNT };

// What is multiplied. Types are those of the tag `dtype`:
//   bf16, fp16   both operands; products summed in fp32
//   tf32         fp32 operands, rounded by the tensor cores
//   e4m3         both operands, one scale each, fast accumulation: the forward pass of fp8 training
//   e5m2         A (the gradient) in e5m2, B in e4m3, one scale each, full accumulation: the two backward
//   passes
// fp8 is TN only, as the tensor cores of compute capability 8.9 and 9.0 read nothing else.
struct GemmPoint {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string dtype = "bf16";
  GemmLayout layout = GemmLayout::kTN;
  bool accumulate = false;  // C += in fp32 (main gradients); else C = in bf16 (fp16, fp32 for those types)
  bool hot = false;         // L2 is left as the last execution left it
  int chunks = 1;           // rows cut into as many calls, as tensor-parallel overlap cuts them; divides m
  bool grouped = false;     // the batch is experts, each with a weight of its own
};

[[nodiscard]] double gemm_flops(const GemmPoint& point);
[[nodiscard]] double gemm_bytes(
    const GemmPoint& point);  // operands once, result once, twice where accumulated
// family gemm, op gemm; shape m n k batch; tags dtype layout output load cache, and chunks, grouped where
// they apply.
[[nodiscard]] Sample gemm_prototype(const GemmPoint& point);
// The inverse; tags that are not given take the defaults above (an NT without output accumulates). Empty: no
// such point.
[[nodiscard]] std::optional<GemmPoint> gemm_point_of(const Sample& wanted);
[[nodiscard]] double gemm_seconds_guess(const GemmPoint& point, const Device& device);  // of one execution

// The product with its operands on the device. Throws Unmeasurable where the library has no algorithm for it.
class GemmRun {
 public:
  GemmRun(const Harness& harness, const GemmPoint& point);
  ~GemmRun();
  GemmRun(const GemmRun&) = delete;
  GemmRun& operator=(const GemmRun&) = delete;

  void enqueue(cudaStream_t stream) const;
  // Executes once on fresh data and compares a random subset with float64. The largest error relative to its
  // bound. Throws WrongResult above 1.
  [[nodiscard]] double check(const Harness& harness);
  [[nodiscard]] std::string algorithm() const;  // "id=66 tile=20 stages=36 splitk=1"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecraft
