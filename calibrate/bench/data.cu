// Data on the device: random operands, poison, and what comes back for the check.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "calibrate/bench/device_values.cuh"
#include "calibrate/bench/for_each_element.cuh"
#include "calibrate/bench/harness.hpp"

namespace stagecraft {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(std::int64_t count, int sms) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, 16LL * sms));
}

template <class T>
__global__ void fill_normal_kernel(T* data, std::int64_t count, std::uint64_t seed, float scale) {
  for_each_element(count, [&](std::int64_t i) {
    data[i] = from_float<T>(scale * normal_number(seed, static_cast<std::uint64_t>(i)));
  });
}

__global__ void fill_integers_kernel(std::int32_t* data, std::int64_t count, std::int32_t limit,
                                     std::uint64_t seed) {
  for_each_element(count, [&](std::int64_t i) {
    data[i] = static_cast<std::int32_t>(random_bits(seed, static_cast<std::uint64_t>(i)) % limit);
  });
}

template <class T>
__global__ void gather_kernel(const T* data, const std::int64_t* indices, std::int64_t count, double* out) {
  for_each_element(count, [&](std::int64_t i) { out[i] = to_double(data[indices[i]]); });
}

}  // namespace

std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
    case Dtype::kFp16:
      return 2;
    case Dtype::kFp32:
    case Dtype::kInt32:
      return 4;
    case Dtype::kE4m3:
    case Dtype::kE5m2:
      return 1;
  }
  throw std::logic_error("a Dtype without a size");
}

double unit_roundoff(Dtype dtype) {
  const auto half_ulp = [](int stored_bits) { return std::ldexp(1.0, -stored_bits - 1); };
  switch (dtype) {
    case Dtype::kBf16:
      return half_ulp(7);
    case Dtype::kFp16:
      return half_ulp(10);
    case Dtype::kFp32:
      return half_ulp(23);
    case Dtype::kE4m3:
      return half_ulp(3);
    case Dtype::kE5m2:
      return half_ulp(2);
    case Dtype::kInt32:
      return 0;
  }
  throw std::logic_error("a Dtype without a precision");
}

void Harness::fill_normal(void* data, std::int64_t count, Dtype dtype, std::uint64_t seed,
                          double scale) const {
  if (count == 0) return;
  with_type(dtype, [&]<class T>(T*) {
    fill_normal_kernel<<<blocks_for(count, device_.sms), kThreads, 0, stream()>>>(
        static_cast<T*>(data), count, seed, static_cast<float>(scale));
  });
  CUDA_CHECK(cudaGetLastError());
}

void Harness::fill_integers(std::int32_t* data, std::int64_t count, std::int32_t limit,
                            std::uint64_t seed) const {
  if (count == 0) return;
  fill_integers_kernel<<<blocks_for(count, device_.sms), kThreads, 0, stream()>>>(data, count, limit, seed);
  CUDA_CHECK(cudaGetLastError());
}

void Harness::poison(void* data, std::int64_t bytes) const {
  CUDA_CHECK(cudaMemsetAsync(data, 0xFF, static_cast<std::size_t>(bytes), stream()));
}

void Harness::poison(const DeviceMemory& memory) const {
  poison(memory.data(), static_cast<std::int64_t>(memory.bytes()));
}

void Harness::upload(const DeviceMemory& memory, const void* from) const {
  CUDA_CHECK(cudaMemcpyAsync(memory.data(), from, memory.bytes(), cudaMemcpyHostToDevice, stream()));
  synchronize();
}

std::vector<double> Harness::read(const void* data, Dtype dtype,
                                  std::span<const std::int64_t> indices) const {
  std::vector<double> values(indices.size());
  if (indices.empty()) return values;
  const DeviceMemory where(indices.size_bytes());
  const DeviceMemory found(values.size() * sizeof(double));
  CUDA_CHECK(
      cudaMemcpyAsync(where.data(), indices.data(), indices.size_bytes(), cudaMemcpyHostToDevice, stream()));
  const auto count = static_cast<std::int64_t>(indices.size());
  with_type(dtype, [&]<class T>(T*) {
    gather_kernel<<<blocks_for(count, device_.sms), kThreads, 0, stream()>>>(
        static_cast<const T*>(data), where.as<std::int64_t>(), count, found.as<double>());
  });
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpyAsync(values.data(), found.data(), found.bytes(), cudaMemcpyDeviceToHost, stream()));
  synchronize();
  return values;
}

std::vector<double> Harness::read_all(const void* data, Dtype dtype, std::int64_t count) const {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return read(data, dtype, indices);
}

std::vector<std::int64_t> Harness::random_indices(std::int64_t count, int wanted, std::uint64_t seed) {
  std::vector<std::int64_t> indices;
  if (count <= 0 || wanted <= 0) return indices;
  indices = {0, count - 1};
  for (int i = 2; i < wanted; ++i)
    indices.push_back(static_cast<std::int64_t>(random_bits(seed, static_cast<std::uint64_t>(i)) %
                                                static_cast<std::uint64_t>(count)));
  return indices;
}

double Harness::require_correct(const std::string& what, double worst) {
  if (worst <= 1) return worst;
  throw WrongResult(what + ": the largest error against float64 is " + std::to_string(worst) +
                    " times its bound");
}

}  // namespace stagecraft
