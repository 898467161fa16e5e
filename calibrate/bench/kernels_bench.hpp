// What one measurement of a kernel needs: operands with random data, poisoned outputs, rows read back.
#pragma once

#include <cuda_bf16.h>

#include <numeric>

#include "calibrate/bench/harness.hpp"
#include "calibrate/bench/kernels_reference.hpp"

namespace stagecraft {

template <class T>
[[nodiscard]] constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return Dtype::kBf16;
  if constexpr (std::is_same_v<T, float>) return Dtype::kFp32;
  return Dtype::kInt32;
}

// Owns the memory of one measurement. Seeds differ from operand to operand.
class Bench {
 public:
  explicit Bench(Harness& harness) : harness_(harness) {}

  template <class T>
  [[nodiscard]] T* room(std::int64_t count) {  // all NaN
    memory_.push_back(harness_.allocate(count * static_cast<std::int64_t>(sizeof(T))));
    harness_.poison(memory_.back());
    return memory_.back().template as<T>();
  }
  template <class T = __nv_bfloat16>
  [[nodiscard]] T* random(std::int64_t count, double scale = 1) {
    T* data = room<T>(count);
    harness_.fill_normal(data, count, dtype_of<T>(), ++seed_, scale);
    return data;
  }
  template <class T>
  [[nodiscard]] T* upload(const std::vector<T>& values) {
    T* data = room<T>(static_cast<std::int64_t>(values.size()));
    harness_.upload(memory_.back(), values.data());
    return data;
  }
  template <class T>
  [[nodiscard]] reference::Row row(const T* data, std::int64_t index, std::int64_t width) const {
    return harness_.read_all(data + index * width, dtype_of<std::remove_const_t<T>>(), width);
  }
  template <class T>
  [[nodiscard]] reference::Row column(const T* data, std::int64_t index, std::int64_t rows,
                                      std::int64_t width) const {
    std::vector<std::int64_t> at(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i) * width + index;
    return harness_.read(data, dtype_of<std::remove_const_t<T>>(), at);
  }
  [[nodiscard]] static std::vector<std::int64_t> sampled(std::int64_t count, int wanted = 8) {
    return Harness::random_indices(count, wanted, 20260704);
  }
  [[nodiscard]] Harness& harness() const { return harness_; }

  // Runs once, for the check.
  void run(const Enqueue& op) const {
    op(harness_.stream());
    harness_.synchronize();
  }
  // The error gathered so far must be within the bound; then the time is taken.
  [[nodiscard]] Measured finish(const std::string& what, double worst, const Enqueue& op, int launches = 1) {
    Harness::require_correct(what, worst);
    TimingOptions timing;
    timing.launches = launches;
    Measured measured = harness_.time(op, timing);
    measured.max_error = worst;
    return measured;
  }

 private:
  Harness& harness_;
  std::vector<DeviceMemory> memory_;
  std::uint64_t seed_ = 1000;
};

}  // namespace stagecraft
