// How everything is measured: memory, data, checks and the clock of one GPU.
//
// A time is believed only if nothing but the operator was in it. So: warmed up; L2 flushed between executions
// unless declared hot; every launch already queued behind a spinning kernel when the clock starts, and that
// is verified, not hoped; clocks read while it runs, throttled batches thrown away; repeated until the median
// is known well enough. And a result is checked against float64 before its time is taken.
//
//   auto out = harness.allocate(bytes);
//   harness.poison(out);                       // NaN in every type: what was not written is seen
//   op(harness.stream());
//   harness.require_correct("op", worst_error(harness.read(out.data(), Dtype::kBf16, where), expected,
//   bounds)); Measured measured = harness.time(op);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrate/bench/cuda_raii.hpp"
#include "calibrate/bench/device.hpp"
#include "calibrate/bench/nvml.hpp"
#include "calibrate/bench/work_item.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {

enum class Dtype { kBf16, kFp16, kFp32, kE4m3, kE5m2, kInt32 };

[[nodiscard]] std::size_t size_of(Dtype dtype);
// Half the distance between 1 and the next number: the relative error of one rounding. 0 for integers.
[[nodiscard]] double unit_roundoff(Dtype dtype);

// This device, driver or library cannot do it, or it could not be timed honestly; the text says which. The
// item is skipped with a notice and the suite goes on.
struct Unmeasurable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The result is outside its bound. Nothing is timed and the suite ends with an error, after the other items.
struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Puts one execution into the stream. It must not wait, allocate or free: it runs behind a kernel that holds
// the stream.
using Enqueue = std::function<void(cudaStream_t)>;

enum class L2 { kCold, kHot };

struct TimingOptions {
  L2 l2 = L2::kCold;   // kCold: a buffer of twice the L2 is read before each execution, which leaves no dirty
                       // lines
  int executions = 1;  // between two events; more than one only where hot is meant (they follow one another)
  int launches = 1;    // kernels of one execution, about; keeps a batch within the launch queue
  // True: power-limited clocks are the point; no batch is discarded for them, none rests.
  bool sustained = false;
  StopRule stop = {};
};

struct HarnessOptions {
  int device_index = 0;
  bool check_only = false;  // time() runs nothing and returns repeats = 0
  double effort = 1;        // scales the time limit of the stop rule; --quick uses less
};

class Harness {
 public:
  // Takes the device, warms it up for a third of a second and notes the SM clock that it runs at under a
  // light load. Throws CudaError where there is no device.
  explicit Harness(const HarnessOptions& options);
  ~Harness();
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] const Nvml& nvml() const { return nvml_; }
  [[nodiscard]] bool check_only() const { return options_.check_only; }
  [[nodiscard]] double effort() const { return options_.effort; }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  void synchronize() const;  // throws what the kernels before it did wrong

  // Throws Unmeasurable where the device has not so much free memory (some is left to the libraries).
  [[nodiscard]] DeviceMemory allocate(std::int64_t bytes) const;

  // Data of its own counter-based generator: the same seed gives the same numbers on every device.
  // Seeds must differ between operands, or their products are squares.
  void fill_normal(void* data, std::int64_t count, Dtype dtype, std::uint64_t seed, double scale = 1) const;
  void fill_integers(std::int32_t* data, std::int64_t count, std::int32_t limit,
                     std::uint64_t seed) const;  // [0, limit)
  // All bits one: NaN in bf16, fp16, fp32, e4m3, e5m2; -1 in int32.
  void poison(const DeviceMemory& memory) const;
  void poison(void* data, std::int64_t bytes) const;

  // Fills memory from the host, in the order of the stream: a plain cudaMemcpy is in the order of the default
  // stream only, for which this one does not wait. Returns when `from` may be changed.
  void upload(const DeviceMemory& memory, const void* from) const;

  // Elements at the given indices, as double. Waits for the stream.
  [[nodiscard]] std::vector<double> read(const void* data, Dtype dtype,
                                         std::span<const std::int64_t> indices) const;
  [[nodiscard]] std::vector<double> read_all(const void* data, Dtype dtype, std::int64_t count) const;
  // `wanted` indices in [0, count), the first and the last among them, equal for equal arguments.
  [[nodiscard]] static std::vector<std::int64_t> random_indices(std::int64_t count, int wanted,
                                                                std::uint64_t seed);
  // worst is the largest |out - ref| / bound. Throws WrongResult if it is above 1 or not a number; returns it
  // otherwise.
  static double require_correct(const std::string& what, double worst);

  // Times one execution of op. Throws Unmeasurable if too few batches were fit to be believed.
  [[nodiscard]] Measured time(const Enqueue& op, const TimingOptions& timing = {});

  // The parts that time() is made of, for measurements of another form (two streams, host clocks).
  void flush_l2(cudaStream_t stream) const;
  void spin(cudaStream_t stream, double seconds) const;  // one thread that waits
  // Queues a spin that measures the SM clock; read after synchronisation. MHz, 0 before any probe.
  void probe_clock(cudaStream_t stream) const;
  [[nodiscard]] int probed_mhz() const;
  [[nodiscard]] int reference_mhz() const { return reference_mhz_; }

 private:
  struct Batch;
  struct Events;
  struct Kept;
  [[nodiscard]] Batch run_batch(const Enqueue& op, const TimingOptions& timing, int repeats);
  [[nodiscard]] bool fit_to_be_believed(const Batch& batch, const TimingOptions& timing) const;
  [[nodiscard]] int batch_size(double seconds_of_one, const TimingOptions& timing) const;
  void warm_up();

  HarnessOptions options_;
  Device device_;
  Nvml nvml_;
  Stream stream_;
  DeviceMemory flush_;
  DeviceMemory clock_probe_;  // two counters and the sink of the flush
  std::unique_ptr<Events> events_;
  double enqueue_seconds_ = 50e-6;  // host time to queue one execution, as seen so far
  int reference_mhz_ = 0;
};

// Properties of a device by its index, and a quick guess of its rates for the estimates. Throws CudaError.
[[nodiscard]] Device query_device(int index);

}  // namespace stagecraft
