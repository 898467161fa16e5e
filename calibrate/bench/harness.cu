#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "calibrate/bench/for_each_element.cuh"
#include "calibrate/bench/harness.hpp"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kProbeSeconds = 60e-6;  // long against the ticks of the global timer (at most 1 us)
constexpr double kBatchSeconds = 8e-3;   // short against the power limiter, which averages over tens of ms
constexpr int kQueueLimit = 400;         // launches and events queued at once; the driver blocks near 1024
constexpr double kLongestGate = 50e-3;
constexpr double kLimitedTolerance = 0.15;  // see Harness::time

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void rest(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

__device__ std::uint64_t global_nanoseconds() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin_kernel(std::uint64_t nanoseconds) {
  const std::uint64_t start = global_nanoseconds();
  while (global_nanoseconds() - start < nanoseconds) {
  }
}

// counters[0] cycles in counters[1] nanoseconds, from one tick of the timer to another.
__global__ void probe_kernel(std::uint64_t nanoseconds, std::uint64_t* counters) {
  const std::uint64_t called = global_nanoseconds();
  std::uint64_t start = called;
  while (start == called) start = global_nanoseconds();
  const long long first = clock64();
  std::uint64_t now = start;
  while (now - start < nanoseconds) now = global_nanoseconds();
  counters[0] = static_cast<std::uint64_t>(clock64() - first);
  counters[1] = now - start;
}

// Reads everything and writes nothing that matters: the sink is written only for a sum that the data cannot
// have.
__global__ void flush_kernel(const uint4* data, std::int64_t count, std::uint64_t* sink) {
  unsigned sum = 0;
  for_each_element(count, [&](std::int64_t i) {
    const uint4 four = __ldcg(data + i);
    sum |= four.x | four.y | four.z | four.w;
  });
  if (sum != 0) *sink = sum;  // the buffer holds zeros
}

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, index));
  return value;
}

std::string pci_bus_id(int index) {
  std::array<char, 32> text{};
  CUDA_CHECK(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index));
  return text.data();
}

}  // namespace

// Dense bf16 operations of one SM in one cycle, for estimates.
//   source   312 TFLOP/s, 108 SMs, 1410 MHz (A100); 989, 132, 1830 (H100); 2250, 148, 1850 (B200) data
//   sheets.
Device query_device(int index) {
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  const double sm_hz = 1e3 * attribute(cudaDevAttrClockRate, index);
  const double memory_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate, index);
  const double bus_bytes = attribute(cudaDevAttrGlobalMemoryBusWidth, index) / 8.0;
  const double operations = properties.major >= 10 ? 8192 : properties.major == 9 ? 4096 : 2048;
  return {.name = properties.name,
          .compute_capability = 10 * properties.major + properties.minor,
          .sms = properties.multiProcessorCount,
          .l2_bytes = properties.l2CacheSize,
          .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .copy_bytes_per_s = std::max(0.5e12, 0.8 * 2 * memory_hz * bus_bytes),
          .dense_flops_per_s = std::max(50e12, 0.6 * properties.multiProcessorCount * operations * sm_hz),
          .shared_bytes = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin)};
}

struct Harness::Events {
  std::vector<Event> start, stop;
};

struct Harness::Batch {
  std::vector<double> seconds;  // of one execution
  bool launches_hidden = false;
  ClockReading clock;
  double power_w = 0;
};

// The batches that count.
struct Harness::Kept {
  std::vector<double> seconds, clocks, powers;
  double spent = 0;

  void add(const Batch& batch, int executions) {
    seconds.insert(seconds.end(), batch.seconds.begin(), batch.seconds.end());
    clocks.push_back(batch.clock.sm_mhz);
    powers.push_back(batch.power_w);
    for (const double one : batch.seconds) spent += one * executions;
  }
  [[nodiscard]] Measured summary() const {
    Measured measured;
    measured.median_s = median(seconds);
    measured.min_s = *std::ranges::min_element(seconds);
    measured.spread = relative_spread(seconds);
    measured.repeats = static_cast<int>(seconds.size());
    measured.sm_mhz = static_cast<int>(median(clocks));
    measured.power_w = median(powers);
    return measured;
  }
};

Harness::Harness(const HarnessOptions& options)
    : options_(options),
      device_([&] {
        CUDA_CHECK(cudaSetDevice(options.device_index));
        CUDA_CHECK(cudaFree(nullptr));  // makes the context
        return query_device(options.device_index);
      }()),
      nvml_(pci_bus_id(options.device_index)),
      flush_(static_cast<std::size_t>(2 * std::max<std::int64_t>(device_.l2_bytes, 1 << 20)) / 16 * 16),
      clock_probe_(3 * sizeof(std::uint64_t)),
      events_(std::make_unique<Events>()) {
  CUDA_CHECK(cudaMemsetAsync(flush_.data(), 0, flush_.bytes(), stream()));
  CUDA_CHECK(cudaMemsetAsync(clock_probe_.data(), 0, clock_probe_.bytes(), stream()));
  warm_up();
}

Harness::~Harness() = default;

void Harness::synchronize() const {
  CUDA_CHECK(cudaStreamSynchronize(stream()));
}

// A third of a second of light load takes the clocks out of idle; then the clock under it is the reference
// that throttling is judged by.
void Harness::warm_up() {
  constexpr double kWarmUp = 0.33;
  constexpr int kProbes = 9;
  for (const auto start = Clock::now(); seconds_since(start) < kWarmUp;) {
    for (int i = 0; i < 20; ++i) flush_l2(stream());
    synchronize();
  }
  std::vector<double> clocks;
  for (int i = 0; i < kProbes; ++i) {
    probe_clock(stream());
    synchronize();
    clocks.push_back(probed_mhz());
  }
  reference_mhz_ = static_cast<int>(median(clocks));
}

DeviceMemory Harness::allocate(std::int64_t bytes) const {
  constexpr std::int64_t kLeft = std::int64_t{512} << 20;
  std::size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  if (bytes > static_cast<std::int64_t>(free) - kLeft)
    throw Unmeasurable("needs " + std::to_string(bytes >> 20) + " MiB of device memory, " +
                       std::to_string(free >> 20) + " MiB are free");
  return DeviceMemory(static_cast<std::size_t>(bytes));
}

void Harness::flush_l2(cudaStream_t stream) const {
  flush_kernel<<<4 * device_.sms, 512, 0, stream>>>(flush_.as<uint4>(),
                                                    static_cast<std::int64_t>(flush_.bytes() / 16),
                                                    clock_probe_.as<std::uint64_t>() + 2);
  CUDA_CHECK(cudaGetLastError());
}

void Harness::spin(cudaStream_t stream, double seconds) const {
  spin_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(seconds * 1e9));
  CUDA_CHECK(cudaGetLastError());
}

void Harness::probe_clock(cudaStream_t stream) const {
  probe_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(kProbeSeconds * 1e9),
                                    clock_probe_.as<std::uint64_t>());
  CUDA_CHECK(cudaGetLastError());
}

int Harness::probed_mhz() const {
  std::array<std::uint64_t, 2> counters{};
  CUDA_CHECK(cudaMemcpyAsync(counters.data(), clock_probe_.data(), sizeof counters, cudaMemcpyDeviceToHost,
                             stream()));
  synchronize();
  return counters[1] == 0
             ? 0
             : static_cast<int>(1e3 * static_cast<double>(counters[0]) / static_cast<double>(counters[1]));
}

// [gate][flush][start]op[stop][flush][start]op[stop]...[clock probe], all queued while the gate still spins.
// If the first start has not been reached when the last launch is queued, no launch can have been waited for.
Harness::Batch Harness::run_batch(const Enqueue& op, const TimingOptions& timing, int repeats) {
  const auto count = static_cast<std::size_t>(repeats);
  while (events_->start.size() < count) {
    events_->start.emplace_back();
    events_->stop.emplace_back();
  }
  Batch batch;
  spin(stream(), std::min(kLongestGate, 30e-6 + 2 * enqueue_seconds_ * repeats));
  const auto queued = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    if (timing.l2 == L2::kCold) flush_l2(stream());
    events_->start[i].record(stream());
    for (int execution = 0; execution < timing.executions; ++execution) op(stream());
    events_->stop[i].record(stream());
  }
  batch.launches_hidden = !events_->start[0].reached();
  enqueue_seconds_ = seconds_since(queued) / repeats;
  probe_clock(stream());
  batch.power_w = nvml_.power_w().value_or(0);
  batch.clock.reasons = nvml_.clock_reasons().value_or(0);
  synchronize();
  CUDA_CHECK(cudaGetLastError());
  batch.clock.sm_mhz = probed_mhz();
  for (std::size_t i = 0; i < count; ++i)
    batch.seconds.push_back(seconds_between(events_->start[i], events_->stop[i]) / timing.executions);
  return batch;
}

bool Harness::fit_to_be_believed(const Batch& batch, const TimingOptions& timing) const {
  if (!batch.launches_hidden) return false;
  return timing.sustained || !throttled(batch.clock, reference_mhz_);
}

// How many executions a batch may hold: short against the power limiter and within the launch queue.
int Harness::batch_size(double seconds_of_one, const TimingOptions& timing) const {
  const int queued = timing.launches * timing.executions + 3;
  const double fitting = std::clamp(kBatchSeconds / seconds_of_one, 1.0, 64.0);
  return std::min(static_cast<int>(fitting), std::max(1, kQueueLimit / queued));
}

// Some kernels reach the power limit within one execution, and then no rest helps. If even single executions
// with long rests run below the reference clock, the point is taken at that clock, which the sample states
// (sm_mhz, and the tag seen_clock=limited): a fit can then tell. A clock more than 15 % low, a hot device or
// launches that could not be hidden are no measurement at all.
Measured Harness::time(const Enqueue& op, const TimingOptions& timing) {
  if (options_.check_only) return {};
  constexpr int kWarmUps = 3;
  constexpr int kPatience = 12;  // bad batches in a row
  for (int i = 0; i < kWarmUps; ++i) op(stream());
  synchronize();
  (void)run_batch(op, timing, 1);
  const Batch trial = run_batch(op, timing, 1);  // by now the host's queueing time is known

  StopRule stop = timing.stop;
  stop.max_seconds *= options_.effort;
  const double flushed = timing.l2 == L2::kCold ? static_cast<double>(flush_.bytes()) : 0;
  const double one = trial.seconds[0] * timing.executions + flushed / device_.copy_bytes_per_s;
  int repeats = batch_size(one, timing);
  double pause = timing.sustained ? 0 : std::min(2 * kBatchSeconds, 2 * one * repeats);
  Kept believed, limited;
  for (int bad = 0; bad < kPatience && !enough(believed.seconds, believed.spent, stop); rest(pause)) {
    const Batch batch = run_batch(op, timing, repeats);
    if (fit_to_be_believed(batch, timing)) {
      believed.add(batch, timing.executions);
      bad = 0;
      continue;
    }
    if (repeats == 1 && batch.launches_hidden && !throttled(batch.clock, reference_mhz_, kLimitedTolerance))
      limited.add(batch, timing.executions);
    ++bad;
    repeats = std::max(1, repeats / 2);
    pause = timing.sustained ? 0 : std::clamp(2 * pause, 1e-3, 0.1);
  }
  constexpr std::size_t kFewest = 5;
  if (believed.seconds.size() >= kFewest) return believed.summary();
  if (limited.seconds.size() >= kFewest) {
    Measured measured = limited.summary();
    measured.observed["clock"] = "limited";
    return measured;
  }
  throw Unmeasurable("clocks stayed low or launches could not be hidden: " +
                     std::to_string(believed.seconds.size()) + " fit repeats, last clock " +
                     std::to_string(probed_mhz()) + " MHz of " + std::to_string(reference_mhz_));
}

}  // namespace stagecraft
