// The emulation sees what it is for: a barrier that is missing, threads that wait for others in vain, copies
// that nothing waits for. And its numbers are those of the formats.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/calibrate/bench/emulation/cuda_bf16.h"
#include "tests/calibrate/bench/emulation/cuda_fp16.h"
#include "tests/calibrate/bench/emulation/cuda_fp8.h"
#include "tests/calibrate/bench/emulation/cuda_runtime.h"

namespace stagecraft::emulation {
namespace {

// Runs `thread` with the index of each of `count` threads.
void run(unsigned count, Order order, const std::function<void(unsigned)>& thread) {
  unsigned index = 0;
  run_block(
      count, order, [&](unsigned i) { index = i; }, [&] { thread(index); });
}

// Thread i writes i and reads what its neighbour wrote.
std::vector<int> of_neighbours(Order order, bool barrier) {
  std::vector<int> shared(64, -1), read(64);
  run(64, order, [&](unsigned i) {
    shared[i] = static_cast<int>(i);
    if (barrier) __syncthreads();
    read[i] = shared[(i + 1) % 64];
  });
  return read;
}

TEST(Emulation, ShowsAMissingBarrierAsADifferenceOfOrders) {
  EXPECT_EQ(of_neighbours(Order::kForward, true), of_neighbours(Order::kBackward, true));
  EXPECT_NE(of_neighbours(Order::kForward, false), of_neighbours(Order::kBackward, false));
}

// Two warps hand over a number twice, in the same place. Without a barrier before the second time the first
// warp writes what the second has yet to read.
TEST(Emulation, LetsAWarpRunAheadOfTheOthers) {
  const auto read = [](Order order, bool barrier) {
    int shared = -1;
    std::vector<int> first(64);
    run(64, order, [&](unsigned i) {
      if (i == 0) shared = 1;
      __syncthreads();
      first[i] = shared;
      (void)__shfl_xor_sync(0xFFFFFFFFU, i, 1);
      if (barrier) __syncthreads();
      if (i == 0) shared = 2;
    });
    return first[63];
  };
  EXPECT_EQ(read(Order::kForward, true), 1);
  EXPECT_EQ(read(Order::kBackward, true), 1);
  EXPECT_EQ(read(Order::kBackward, false), 2);  // the last to come goes on first
}

TEST(Emulation, ExchangesBetweenLanes) {
  std::vector<int> sums(64);
  run(64, Order::kBackward, [&](unsigned i) {
    int sum = static_cast<int>(i);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, step);
    sums[i] = sum;
  });
  EXPECT_EQ(sums[5], 31 * 32 / 2);
  EXPECT_EQ(sums[37], 31 * 32 / 2 + 32 * 32);
}

TEST(Emulation, RefusesABarrierThatSomeThreadsDoNotReach) {
  const auto some = [](unsigned i) {
    if (i < 40) __syncthreads();
  };
  EXPECT_THROW(run(64, Order::kForward, some), Divergence);
  const auto apart = [](unsigned i) {
    if (i < 32)
      __syncthreads();
    else
      __syncthreads();
  };
  EXPECT_THROW(run(64, Order::kForward, apart), Divergence);
}

TEST(Emulation, RefusesAnExchangeThatALaneOfTheMaskDoesNotReach) {
  const auto all_but_one = [](unsigned i) {
    if (i != 7) (void)__shfl_xor_sync(0xFFFFFFFFU, i, 1);
  };
  EXPECT_THROW(run(32, Order::kForward, all_but_one), Divergence);
  EXPECT_EQ(of_neighbours(Order::kForward, true)[0], 1);  // and goes on afterwards
}

TEST(Emulation, BeginsABlockWithSharedMemoryThatIsNoNumber) {
  static float shared[2];
  shared[0] = 1;
  run(2, Order::kForward, [&](unsigned) {
    fresh(shared);
    EXPECT_TRUE(std::isnan(shared[0]));
  });
}

// What is queued reads host memory when it is done, not when it is asked for, and a copy of the default
// stream comes after a stream that does not wait for it.
TEST(Emulation, CopiesAsLateAsItMay) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  int *device = nullptr, host = 3, back = 0;
  ASSERT_EQ(cudaMalloc(&device, sizeof(int)), cudaSuccess);
  (void)cudaMemcpyAsync(device, &host, sizeof host, cudaMemcpyHostToDevice, stream);
  host = 4;
  (void)cudaMemcpyAsync(&back, device, sizeof back, cudaMemcpyDeviceToHost, stream);
  EXPECT_EQ(back, 0);
  (void)cudaStreamSynchronize(stream);
  EXPECT_EQ(back, 4);
  host = 5;
  (void)cudaMemcpy(device, &host, sizeof host, cudaMemcpyHostToDevice);
  (void)cudaMemcpyAsync(&back, device, sizeof back, cudaMemcpyDeviceToHost, stream);
  (void)cudaStreamSynchronize(stream);
  EXPECT_EQ(back, 4);
  (void)cudaFree(device);
  (void)cudaStreamDestroy(stream);
}

TEST(Emulation, HasNoPointInALaunchThatNoDeviceTakes) {
  launch({"kernel", 1, 1025, 0, nullptr}, [] {});
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  launch({"kernel", Extent(1, 65536), 32, 0, nullptr}, [] {});
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(SmallFloats, RoundToTheNearestEven) {
  EXPECT_EQ(static_cast<float>(__nv_bfloat16(1.0F + 0x1p-8F)), 1.0F);  // half way, to even
  EXPECT_EQ(static_cast<float>(__nv_bfloat16(1.0F + 0x3p-8F)), 1.0F + 0x1p-6F);
  EXPECT_EQ(static_cast<float>(__half(2049.0F)), 2048.0F);
  EXPECT_EQ(static_cast<float>(__half(0x1p-25F)), 0.0F);
  EXPECT_EQ(static_cast<float>(__half(0x3p-25F)), 0x1p-23F);  // the smallest is 2^-24
  EXPECT_EQ(static_cast<float>(__nv_fp8_e4m3(1.9999F)), 2.0F);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e5m2(-1.125F)), -1.0F);
}

TEST(SmallFloats, EndWhereTheFormatsDo) {
  EXPECT_EQ(static_cast<float>(__nv_fp8_e4m3(1e6F)), 448.0F);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e5m2(1e6F)), 57344.0F);
  EXPECT_EQ(static_cast<float>(__half(1e6F)), INFINITY);
  EXPECT_EQ(static_cast<float>(__nv_bfloat16(-INFINITY)), -INFINITY);
  EXPECT_TRUE(std::isnan(static_cast<float>(__nv_bfloat16(NAN))));
  const auto of_ones = [](auto number) {
    std::memset(&number, 0xFF, sizeof number);
    return static_cast<float>(number);
  };
  EXPECT_TRUE(std::isnan(of_ones(__nv_fp8_e4m3())) && std::isnan(of_ones(__nv_fp8_e5m2())));
  EXPECT_TRUE(std::isnan(of_ones(__half())) && std::isnan(of_ones(__nv_bfloat16())));
}

}  // namespace
}  // namespace stagecraft::emulation
