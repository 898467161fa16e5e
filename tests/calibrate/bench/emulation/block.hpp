// One thread block on the CPU: its threads are fibers that run one after the other and change only where CUDA
// makes threads wait for each other, at a barrier or an exchange within a warp.
//
// In which order they run is a choice (Order); a warp runs as far as it can before the next one does. Where a
// kernel is right no order can be seen in its result; where a barrier is missing, a thread reads what another
// writes later in one order and earlier in the other.
// Shared memory is NaN when a block begins.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

namespace stagecraft::emulation {

enum class Order { kForward, kBackward };

struct Extent {  // dim3
  constexpr Extent(unsigned size_x = 1, unsigned size_y = 1, unsigned size_z = 1)
      : x(size_x), y(size_y), z(size_z) {}
  [[nodiscard]] unsigned count() const { return x * y * z; }
  unsigned x, y, z;
};

// What the kernel did wrong, where CUDA gives no defined result: threads that wait at different places, or
// for one that has returned.
struct Divergence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Runs `body` once for each thread of a block, after `enter` has said which it is. Throws Divergence.
void run_block(const Extent& threads, Order order, const std::function<void(unsigned)>& enter,
               const std::function<void()>& body);

// A line of the kernel.
struct Where {
  const char* file;
  int line;
};

// The calling thread waits until all of its block are here.
void wait_for_block(Where where);

// The calling thread hands over `size` bytes (8 at most) and gets those of another lane, when all lanes of
// the mask have come.
void exchange_in_warp(unsigned mask, void* value, std::size_t size, unsigned from_lane, Where where);
[[nodiscard]] unsigned lane();

// Fills shared memory with all ones, NaN in every type, when the first thread of a block comes by.
void fresh_bytes(void* memory, std::size_t size);
template <class T>
void fresh(T& variable) {
  fresh_bytes(&variable, sizeof variable);
}

}  // namespace stagecraft::emulation
