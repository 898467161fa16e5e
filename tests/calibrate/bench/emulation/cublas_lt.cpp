#include <cstdint>
#include <cstring>

#include "tests/calibrate/bench/emulation/cublasLt.h"
#include "tests/calibrate/bench/emulation/cuda_bf16.h"
#include "tests/calibrate/bench/emulation/cuda_fp16.h"
#include "tests/calibrate/bench/emulation/cuda_fp8.h"

namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;

// Copies an attribute of exactly the size that the manual names.
template <class T>
cublasStatus_t take(T& to, const void* value, std::size_t size) {
  if (size != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t size_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? 4 : type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 ? 1 : 2;
}
bool is_fp8(cudaDataType_t type) {
  return size_of(type) == 1;
}

double element(const void* data, cudaDataType_t type, std::int64_t at) {
  switch (type) {
    case CUDA_R_32F:
      return static_cast<const float*>(data)[at];
    case CUDA_R_16F:
      return static_cast<float>(static_cast<const __half*>(data)[at]);
    case CUDA_R_16BF:
      return static_cast<float>(static_cast<const __nv_bfloat16*>(data)[at]);
    case CUDA_R_8F_E4M3:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[at]);
    case CUDA_R_8F_E5M2:
      return static_cast<float>(static_cast<const __nv_fp8_e5m2*>(data)[at]);
  }
  return NAN;
}
void put(void* data, cudaDataType_t type, std::int64_t at, double value) {
  const auto narrow = static_cast<float>(value);
  if (type == CUDA_R_32F) static_cast<float*>(data)[at] = narrow;
  if (type == CUDA_R_16F) static_cast<__half*>(data)[at] = narrow;
  if (type == CUDA_R_16BF) static_cast<__nv_bfloat16*>(data)[at] = narrow;
}

// What the manual asks of fp8 operands.
bool supported(const cublasLtMatmulDescOpaque_t& desc, const Layout& a, const Layout& b, const Layout& d) {
  if (!is_fp8(a.type)) return a.type == b.type && !is_fp8(b.type);
  const bool pairs = is_fp8(b.type) && (a.type != CUDA_R_8F_E5M2 || b.type != CUDA_R_8F_E5M2);
  const auto whole = [](const Layout& m) {
    return m.leading * static_cast<std::int64_t>(size_of(m.type)) % 16 == 0;
  };
  return pairs && desc.first == CUBLAS_OP_T && desc.second == CUBLAS_OP_N && whole(a) && whole(b) &&
         whole(d) && desc.compute == CUBLAS_COMPUTE_32F && !is_fp8(d.type);
}

struct Product {
  cublasLtMatmulDescOpaque_t desc;
  Layout a, b, c;
  const void *at_a, *at_b;
  void* at_c;
  float alpha, beta;

  [[nodiscard]] std::int64_t inner() const {
    return static_cast<std::int64_t>(desc.first == CUBLAS_OP_T ? a.rows : a.columns);
  }
  [[nodiscard]] bool fits() const {
    const auto rows = desc.first == CUBLAS_OP_T ? a.columns : a.rows;
    const auto columns = desc.second == CUBLAS_OP_T ? b.rows : b.columns;
    const auto deep = desc.second == CUBLAS_OP_T ? b.columns : b.rows;
    const auto stands = [](const Layout& m) { return m.leading >= static_cast<std::int64_t>(m.rows); };
    return rows == c.rows && columns == c.columns && deep == static_cast<std::uint64_t>(inner()) &&
           a.batch == c.batch && b.batch == c.batch && stands(a) && stands(b) && stands(c);
  }
  void run() const {
    const double scale = stagecraft::emulation::machine().fault_of_products * alpha *
                         (desc.first_scale != nullptr ? *desc.first_scale : 1.0F) *
                         (desc.second_scale != nullptr ? *desc.second_scale : 1.0F);
    for (std::int64_t batch = 0; batch < c.batch; ++batch)
      for (std::int64_t column = 0; column < static_cast<std::int64_t>(c.columns); ++column)
        for (std::int64_t row = 0; row < static_cast<std::int64_t>(c.rows); ++row) {
          const std::int64_t to = batch * c.stride + column * c.leading + row;
          const double before = beta == 0 ? 0 : beta * element(at_c, c.type, to);
          put(at_c, c.type, to, before + scale * sum(batch, row, column));
        }
  }
  [[nodiscard]] double sum(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    const std::int64_t from_a = batch * a.stride + (desc.first == CUBLAS_OP_T ? row * a.leading : row);
    const std::int64_t from_b = batch * b.stride + (desc.second == CUBLAS_OP_T ? column : column * b.leading);
    const std::int64_t step_a = desc.first == CUBLAS_OP_T ? 1 : a.leading;
    const std::int64_t step_b = desc.second == CUBLAS_OP_T ? b.leading : 1;
    double total = 0;
    for (std::int64_t i = 0; i < inner(); ++i)
      total += element(at_a, a.type, from_a + i * step_a) * element(at_b, b.type, from_b + i * step_b);
    return total;
  }
};

}  // namespace

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "an error of the emulation";
}
std::size_t cublasLtGetVersion() {
  return 0;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale_type) {
  *desc = new cublasLtMatmulDescOpaque_t{.compute = compute, .scale_type = scale_type};
  return scale_type == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t size) {
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(desc->first, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(desc->second, value, size);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return take(desc->first_scale, value, size);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return take(desc->second_scale, value, size);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return take(desc->fast, value, size);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  *layout = new Layout{.type = type, .rows = rows, .columns = columns, .leading = leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t which, const void* value,
                                                std::size_t size) {
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return take(layout->batch, value, size);
  return take(layout->stride, value, size);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t, const void* value,
                                                    std::size_t size) {
  return take(preference->workspace, value, size);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  *count = supported(*desc, *a, *b, *d) ? 1 : 0;
  *found = {};
  return *count == 1 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*,
                              std::size_t, cudaStream_t stream) {
  const Product product{.desc = *desc,
                        .a = *a_layout,
                        .b = *b_layout,
                        .c = *c_layout,
                        .at_a = a,
                        .at_b = b,
                        .at_c = d,
                        .alpha = *static_cast<const float*>(alpha),
                        .beta = *static_cast<const float*>(beta)};
  if (c != d || c_layout != d_layout || !product.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  stagecraft::emulation::queue(stream, [product] {
    product.run();
    stagecraft::emulation::advance(10000);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t*,
                                                    cublasLtMatmulAlgoConfigAttributes_t, void* value,
                                                    std::size_t size, std::size_t* written) {
  std::memset(value, 0, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}
