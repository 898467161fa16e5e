// What communication takes from compute: a matrix product beside a kernel that holds N multiprocessors and
// moves data through memory, as a collective does. One GPU can tell this much; links it cannot.
#include <algorithm>
#include <chrono>
#include <thread>

#include "calibrate/bench/gemm.hpp"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLongest =
    8'000'000'000;                         // nanoseconds; then the kernel ends by itself, whatever happened
constexpr std::int64_t kChunk = 64 << 10;  // bytes of a block at a time
// Chunks between two looks at the stop flag, 4 MiB. The flag is in host memory, and looks are traffic that
// collectives have not: one a chunk made products 1.4 to 8 times as slow (H200), even beside a kernel that
// only looked.
constexpr int kLookEvery = 64;
constexpr int kThreads = 512;  // of a block: what a channel of NCCL uses

// In host memory that the device sees.
struct Mailbox {
  volatile int stop;
  volatile int started[256];          // by block
  volatile std::uint64_t bytes[256];  // moved by each block
};

__device__ std::uint64_t now_nanoseconds() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Copies, or adds two arrays into a third, over and over until told to stop. Its shared memory is as large as
// a multiprocessor's, so that nothing else fits beside it and N blocks are N multiprocessors.
__global__ void background_kernel(const float4* a, const float4* b, float4* to, std::int64_t count,
                                  Mailbox* mail) {
  const std::int64_t chunk = kChunk / static_cast<std::int64_t>(sizeof(float4));
  const std::int64_t chunks = count / chunk;
  const std::uint64_t start = now_nanoseconds();
  std::uint64_t moved = 0;
  if (threadIdx.x == 0) mail->started[blockIdx.x] = 1;
  int done = 0;
  for (std::int64_t at = blockIdx.x % chunks;; at = (at + gridDim.x) % chunks) {
    for (std::int64_t i = at * chunk + threadIdx.x; i < (at + 1) * chunk; i += blockDim.x) {
      float4 value = a[i];
      if (b != nullptr) {
        const float4 other = b[i];
        value = make_float4(value.x + other.x, value.y + other.y, value.z + other.z, value.w + other.w);
      }
      to[i] = value;
    }
    moved += static_cast<std::uint64_t>(kChunk) * (b != nullptr ? 3 : 2);
    if (++done % kLookEvery != 0) continue;
    __shared__ int stop;
    if (threadIdx.x == 0) {
      mail->bytes[blockIdx.x] = moved;
      stop = mail->stop != 0 || now_nanoseconds() - start > kLongest;
    }
    __syncthreads();
    const bool leave = stop != 0;
    __syncthreads();
    if (leave) return;
  }
}

// The kernel beside the product, from construction to destruction.
class Background {
 public:
  Background(const Harness& harness, int sms, bool reduce) : sms_(sms), mailbox_(sizeof(Mailbox)) {
    constexpr std::int64_t kBytes = std::int64_t{512} << 20;
    for (DeviceMemory* memory : {&a_, &b_, &to_}) {
      *memory = harness.allocate(kBytes);
      harness.fill_normal(memory->data(), kBytes / 4, Dtype::kFp32, 41);
    }
    harness.synchronize();
    *mailbox_.as<Mailbox>() = {};
    const auto shared =
        static_cast<int>(harness.device().shared_bytes) - 2048;  // leaves room for static shared memory
    CUDA_CHECK(cudaFuncSetAttribute(background_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    background_kernel<<<static_cast<unsigned>(sms), kThreads, static_cast<std::size_t>(shared),
                        stream_.get()>>>(a_.as<float4>(), reduce ? b_.as<float4>() : nullptr,
                                         to_.as<float4>(), kBytes / static_cast<std::int64_t>(sizeof(float4)),
                                         mailbox_.as<Mailbox>());
    CUDA_CHECK(cudaGetLastError());
    done_.record(stream_.get());
    if (!wait_for_start()) {
      stop();
      throw Unmeasurable("the kernel beside it did not get its multiprocessors");
    }
  }
  ~Background() { stop(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  [[nodiscard]] bool running() const { return !done_.reached(); }
  [[nodiscard]] double bytes_moved() const {
    double sum = 0;
    for (int i = 0; i < sms_; ++i) sum += static_cast<double>(mailbox_.as<Mailbox>()->bytes[i]);
    return sum;
  }

 private:
  [[nodiscard]] bool wait_for_start() const {
    const auto begin = Clock::now();
    const Mailbox* mail = mailbox_.as<Mailbox>();
    for (int block = 0; block < sms_;) {
      if (mail->started[block] != 0) {
        ++block;
      } else if (Clock::now() - begin > std::chrono::seconds(2)) {
        return false;
      } else {
        std::this_thread::yield();
      }
    }
    return true;
  }
  void stop() {
    mailbox_.as<Mailbox>()->stop = 1;
    (void)cudaStreamSynchronize(stream_.get());
  }

  int sms_;
  PinnedMemory mailbox_;
  DeviceMemory a_, b_, to_;
  Stream stream_;
  Event done_;
};

Measured run_beside(Harness& harness, const GemmPoint& point, int sms, bool reduce) {
  GemmRun run(harness, point);
  const double error = run.check(harness);
  const Enqueue op = [&](cudaStream_t stream) { run.enqueue(stream); };
  // Once alone: a kernel that the driver has yet to load would wait for the one beside it to end.
  Measured measured = harness.time(op, {.stop = {.max_repeats = sms == 0 ? 400 : 10}});
  measured.max_error = error;
  measured.observed["algo"] = run.algorithm();
  if (sms == 0 || harness.check_only()) return measured;
  const double alone = measured.median_s;
  const Background background(harness, sms, reduce);
  const double moved = background.bytes_moved();
  const auto start = Clock::now();
  auto observed = measured.observed;
  measured = harness.time(op, {.stop = {.max_seconds = 0.4}});
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!background.running()) throw Unmeasurable("the kernel beside it ended first");
  observed["background_GBps"] =
      std::to_string(std::lround((background.bytes_moved() - moved) / seconds * 1e-9));
  observed["slowdown"] = std::to_string(measured.median_s / alone);
  measured.max_error = error;
  measured.observed.merge(observed);
  return measured;
}

}  // namespace

// The feed-forward products of an 8-billion-parameter model, whose overlap with data-parallel traffic is at
// stake.
std::vector<WorkItem> interference_items(const Device& device) {
  const GemmPoint points[] = {
      {.m = 4096, .n = 28672, .k = 4096},
      {.m = 4096, .n = 4096, .k = 14336},
      {.m = 28672, .n = 4096, .k = 4096, .layout = GemmLayout::kNT, .accumulate = true},
  };
  std::vector<WorkItem> items;
  for (const GemmPoint& point : points)
    for (const bool reduce : {false, true})
      for (const int sms : {0, 4, 8, 16, 24, 32}) {
        if (sms > device.sms / 2 || (reduce && sms == 0)) continue;
        WorkItem item;
        item.prototype = gemm_prototype(point);
        item.prototype.family = "interference";
        item.prototype.op = reduce ? "gemm_beside_reduce" : "gemm_beside_copy";
        item.prototype.shape.erase("batch");
        item.prototype.shape["sms"] = sms;
        item.value = sms == 0 || sms == 16 ? 71 : sms == 8 || sms == 24 ? 66 : 47;
        item.estimated_seconds = 1.5;
        item.run = [point, sms, reduce](Harness& harness) { return run_beside(harness, point, sms, reduce); };
        items.push_back(std::move(item));
      }
  return items;
}

}  // namespace stagecraft
