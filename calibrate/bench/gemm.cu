#include <cublasLt.h>

#include <array>
#include <cmath>
#include <type_traits>

#include "calibrate/bench/device_values.cuh"
#include "calibrate/bench/gemm.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // what frameworks give the library on such devices
constexpr int kCheckedOutputs = 96;

void cublas_check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string what = std::string(call) + ": " + cublasLtGetStatusString(status);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
      status == CUBLAS_STATUS_INVALID_VALUE)
    throw Unmeasurable(what);
  throw CudaError(cudaErrorUnknown, what);
}
#define CUBLAS_CHECK(call) cublas_check((call), #call)

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const {
    (void)Destroy(handle);
  }
};
template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Destroy>>;

using Handle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using MatmulDesc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t library_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return CUDA_R_16BF;
    case Dtype::kFp16:
      return CUDA_R_16F;
    case Dtype::kFp32:
      return CUDA_R_32F;
    case Dtype::kE4m3:
      return CUDA_R_8F_E4M3;
    case Dtype::kE5m2:
      return CUDA_R_8F_E5M2;
    case Dtype::kInt32:
      break;
  }
  throw std::logic_error("no matrix product in this type");
}

struct Types {
  Dtype a, b, c;
  double accumulation;  // error of the sum, relative to the sum of absolute products
};

// Errors of the sum: fp32 sums of exact products keep more than 16 bits for every k that is measured. The
// tensor cores drop the low 13 bits of fp32 operands for tf32, and keep about 13 bits of partial sums in fp8
// (fast accumulation).
Types types_of(const GemmPoint& point) {
  const double good = 0x1p-16, coarse = 0x1p-9;
  const Dtype result = point.accumulate ? Dtype::kFp32 : Dtype::kBf16;
  if (point.dtype == "bf16") return {Dtype::kBf16, Dtype::kBf16, result, good};
  if (point.dtype == "fp16")
    return {Dtype::kFp16, Dtype::kFp16, point.accumulate ? result : Dtype::kFp16, good};
  if (point.dtype == "tf32") return {Dtype::kFp32, Dtype::kFp32, Dtype::kFp32, coarse};
  if (point.dtype == "e4m3") return {Dtype::kE4m3, Dtype::kE4m3, result, coarse};
  if (point.dtype == "e5m2") return {Dtype::kE5m2, Dtype::kE4m3, result, coarse};
  throw Unmeasurable("no dtype " + point.dtype);
}
bool is_fp8(Dtype dtype) {
  return dtype == Dtype::kE4m3 || dtype == Dtype::kE5m2;
}

// Strides of the row-major operands as they lie in memory.
struct Strides {
  std::int64_t a_row, a_inner, b_inner, b_column;
};
Strides strides_of(const GemmPoint& p) {
  switch (p.layout) {
    case GemmLayout::kTN:
      return {p.k, 1, 1, p.k};
    case GemmLayout::kNN:
      return {p.k, 1, p.n, 1};
    case GemmLayout::kNT:
      return {1, p.m, p.n, 1};
  }
  throw std::logic_error("a GemmLayout without strides");
}

struct ReferenceProblem {
  std::int64_t m, n, k;
  Strides strides;
};

// One block an output: the product and the sum of its absolute products, in float64.
template <class A, class B>
__global__ void reference_kernel(ReferenceProblem p, const A* a, const B* b, const std::int64_t* outputs,
                                 double* sums) {
  const std::int64_t output = outputs[blockIdx.x];
  const std::int64_t batch = output / (p.m * p.n), row = output / p.n % p.m, column = output % p.n;
  a += batch * p.m * p.k + row * p.strides.a_row;
  b += batch * p.k * p.n + column * p.strides.b_column;
  double sum = 0, absolute = 0;
  for (std::int64_t i = threadIdx.x; i < p.k; i += blockDim.x) {
    const double product = to_double(a[i * p.strides.a_inner]) * to_double(b[i * p.strides.b_inner]);
    sum += product;
    absolute += fabs(product);
  }
  __shared__ double partial[2][256];
  partial[0][threadIdx.x] = sum;
  partial[1][threadIdx.x] = absolute;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      for (auto& column_sums : partial) column_sums[threadIdx.x] += column_sums[threadIdx.x + half];
  }
  if (threadIdx.x < 2) sums[2 * blockIdx.x + threadIdx.x] = partial[threadIdx.x][0];
}

MatrixLayout matrix(cudaDataType_t type, std::int64_t rows, std::int64_t columns, const GemmPoint& point,
                    std::int64_t batch_stride) {
  cublasLtMatrixLayout_t raw = nullptr;
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&raw, type, static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), rows));
  MatrixLayout layout(raw);
  const auto count = static_cast<std::int32_t>(point.batch);
  CUBLAS_CHECK(
      cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &batch_stride, sizeof batch_stride));
  return layout;
}

template <class Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, const Value& value) {
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(desc, which, &value, sizeof value));
}

}  // namespace

struct GemmRun::State {
  GemmPoint point;
  Types types;
  Handle handle;
  MatmulDesc desc;
  MatrixLayout a, b, c;  // in the library's order: its a is our B
  cublasLtMatmulAlgo_t algorithm{};
  DeviceMemory left, right, result, workspace, scales;
  std::int64_t rows = 0;  // of one call

  void describe();
  void choose_algorithm();
};

namespace {

constexpr float kLeftScale = 0.5F,
                kRightScale = 4.0F;  // their product is not 1: a scale that is ignored is seen

}  // namespace

void GemmRun::State::describe() {
  cublasLtHandle_t raw_handle = nullptr;
  CUBLAS_CHECK(cublasLtCreate(&raw_handle));
  handle.reset(raw_handle);
  cublasLtMatmulDesc_t raw = nullptr;
  const bool tf32 = point.dtype == "tf32";
  CUBLAS_CHECK(
      cublasLtMatmulDescCreate(&raw, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
  desc.reset(raw);
  const bool ours_b_transposed = point.layout == GemmLayout::kTN,
             ours_a_transposed = point.layout == GemmLayout::kNT;
  const cublasOperation_t first = ours_b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = ours_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(raw, CUBLASLT_MATMUL_DESC_TRANSA, first);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSB, second);
  if (is_fp8(types.a)) {
    const void* const left_scale = scales.as<float>();
    const void* const right_scale = scales.as<float>() + 4;  // 16 bytes on
    set(raw, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, right_scale);
    set(raw, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, left_scale);
    const std::int8_t fast = types.a == Dtype::kE4m3 ? 1 : 0;
    set(raw, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
  }
  const std::int64_t m = rows, n = point.n, k = point.k;
  a = matrix(library_type(types.b), ours_b_transposed ? k : n, ours_b_transposed ? n : k, point, k * n);
  b = matrix(library_type(types.a), ours_a_transposed ? m : k, ours_a_transposed ? k : m, point, m * k);
  c = matrix(library_type(types.c), n, m, point, m * n);
}

void GemmRun::State::choose_algorithm() {
  cublasLtMatmulPreference_t raw = nullptr;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&raw));
  const Preference preference(raw);
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &kWorkspace, sizeof kWorkspace));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(handle.get(), desc.get(), a.get(), b.get(), c.get(), c.get(),
                                              raw, 1, &found, &count));
  if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
    throw Unmeasurable("cuBLASLt has no algorithm for it");
  algorithm = found.algo;
}

GemmRun::GemmRun(const Harness& harness, const GemmPoint& point) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.point = point;
  s.types = types_of(point);
  if (is_fp8(s.types.a) && point.layout != GemmLayout::kTN) throw Unmeasurable("fp8 products are TN only");
  if (is_fp8(s.types.a) && harness.device().compute_capability < 89)
    throw Unmeasurable("the device has no fp8");
  s.rows = point.m / point.chunks;
  const std::int64_t left = point.batch * point.m * point.k, right = point.batch * point.k * point.n;
  const std::int64_t result = point.batch * point.m * point.n;
  s.left = harness.allocate(left * static_cast<std::int64_t>(size_of(s.types.a)));
  s.right = harness.allocate(right * static_cast<std::int64_t>(size_of(s.types.b)));
  s.result = harness.allocate(result * static_cast<std::int64_t>(size_of(s.types.c)));
  s.workspace = harness.allocate(static_cast<std::int64_t>(kWorkspace));
  s.scales = harness.allocate(32);
  const std::array<float, 8> scales = {kLeftScale, 0, 0, 0, kRightScale, 0, 0, 0};
  harness.upload(s.scales, scales.data());
  harness.fill_normal(s.left.data(), left, s.types.a, 11);
  harness.fill_normal(s.right.data(), right, s.types.b, 12);
  if (point.accumulate)
    harness.fill_normal(s.result.data(), result, s.types.c, 13);
  else
    harness.poison(s.result);
  s.describe();
  s.choose_algorithm();
}

GemmRun::~GemmRun() = default;

void GemmRun::enqueue(cudaStream_t stream) const {
  const State& s = *state_;
  const float alpha = 1, beta = s.point.accumulate ? 1 : 0;
  const auto chunk = static_cast<std::size_t>(s.rows);
  const std::size_t left_step = chunk * static_cast<std::size_t>(s.point.k) * size_of(s.types.a);
  const std::size_t result_step = chunk * static_cast<std::size_t>(s.point.n) * size_of(s.types.c);
  for (std::size_t i = 0; i < static_cast<std::size_t>(s.point.chunks); ++i) {
    char* const result = s.result.as<char>() + i * result_step;
    CUBLAS_CHECK(cublasLtMatmul(s.handle.get(), s.desc.get(), &alpha, s.right.data(), s.a.get(),
                                s.left.as<char>() + i * left_step, s.b.get(), &beta, result, s.c.get(),
                                result, s.c.get(), &s.algorithm, s.workspace.data(), kWorkspace, stream));
  }
}

double GemmRun::check(const Harness& harness) {
  State& s = *state_;
  const GemmPoint& p = s.point;
  const std::int64_t count = p.batch * p.m * p.n;
  const auto outputs = Harness::random_indices(count, kCheckedOutputs, 14);
  if (p.accumulate)
    harness.fill_normal(s.result.data(), count, s.types.c, 13);
  else
    harness.poison(s.result);
  const auto before = p.accumulate ? harness.read(s.result.data(), s.types.c, outputs)
                                   : std::vector<double>(outputs.size(), 0.0);
  enqueue(harness.stream());
  const auto values = harness.read(s.result.data(), s.types.c, outputs);

  const DeviceMemory where(outputs.size() * sizeof(std::int64_t)), sums(2 * outputs.size() * sizeof(double));
  harness.upload(where, outputs.data());
  const ReferenceProblem problem{p.m, p.n, p.k, strides_of(p)};
  const auto launch = [&]<class A, class B>(A*, B*) {
    reference_kernel<<<static_cast<unsigned>(outputs.size()), 256, 0, harness.stream()>>>(
        problem, s.left.as<A>(), s.right.as<B>(), where.as<std::int64_t>(), sums.as<double>());
  };
  with_type(s.types.a, [&]<class A>(A* a) {
    if constexpr (std::is_same_v<A, __nv_fp8_e5m2>)
      launch(a, static_cast<__nv_fp8_e4m3*>(nullptr));
    else
      launch(a, a);
  });
  CUDA_CHECK(cudaGetLastError());
  std::vector<double> reference(2 * outputs.size());
  CUDA_CHECK(
      cudaMemcpyAsync(reference.data(), sums.data(), sums.bytes(), cudaMemcpyDeviceToHost, harness.stream()));
  harness.synchronize();

  const double scale = is_fp8(s.types.a) ? kLeftScale * kRightScale : 1;
  const double rounding = 2 * unit_roundoff(s.types.c);
  std::vector<double> expected, bounds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double product = scale * reference[2 * i], absolute = scale * reference[2 * i + 1];
    expected.push_back(before[i] + product);
    // Partial sums of a split k may be rounded to the output's type: of the size of the sum's standard
    // deviation.
    const double partial = 2 * absolute / std::sqrt(static_cast<double>(p.k));
    bounds.push_back(rounding * (std::fabs(before[i]) + std::fabs(product) + partial) +
                     s.types.accumulation * absolute);
  }
  return Harness::require_correct("gemm", worst_error(values, expected, bounds));
}

std::string GemmRun::algorithm() const {
  const auto config = [&]<class Value>(cublasLtMatmulAlgoConfigAttributes_t which, Value value) {
    std::size_t written = 0;
    (void)cublasLtMatmulAlgoConfigGetAttribute(&state_->algorithm, which, &value, sizeof value, &written);
    return std::to_string(value);
  };
  return "id=" + config(CUBLASLT_ALGO_CONFIG_ID, std::int32_t{-1}) +
         " tile=" + config(CUBLASLT_ALGO_CONFIG_TILE_ID, std::uint32_t{0}) +
         " stages=" + config(CUBLASLT_ALGO_CONFIG_STAGES_ID, std::uint32_t{0}) +
         " splitk=" + config(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, std::int32_t{0});
}

}  // namespace stagecraft
