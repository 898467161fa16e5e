// The device of the emulation: one, slow, with a clock of its own that only counts.
//
// Work is queued by stream and done when somebody waits for it, as late as CUDA allows: what the host frees
// or changes too early, and what is ordered by no stream, gives a wrong result here. The clock advances by a
// fixed amount for each launch, copy and look at the timer, so that the logic of timing can be run; its times
// say nothing about anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/calibrate/bench/emulation/block.hpp"

namespace stagecraft::emulation {

using Work = std::function<void()>;

struct Graph {
  std::vector<Work> nodes;
};
struct Stream {
  std::deque<Work> queue;
  Graph* capture = nullptr;  // where work goes instead
};
struct Event {
  int pending = 0;  // times recorded and not reached
  std::uint64_t nanoseconds = 0;
};

// What tests choose and see.
struct Machine {
  Order order = Order::kForward;
  int sms = 2;
  std::size_t memory = std::size_t{640} << 20;  // the harness leaves 512 MiB to the libraries
  std::string fault;                            // a kernel of this name loses the device
  double fault_of_products = 1;                 // factor of all results of cuBLASLt
  std::uint64_t digest = 0;                     // of all memory that was freed, in the order of freeing
  std::map<std::string, int> launches;          // by kernel
};
[[nodiscard]] Machine& machine();

enum class Status { kGood, kBadConfiguration, kOutOfMemory, kLost, kNotReady, kBadValue };
// What went wrong on the device; nothing works any more.
[[nodiscard]] const std::string& lost_why();

struct Configuration {
  const char* kernel;
  Extent blocks, threads;
  std::size_t shared = 0;
  Stream* stream = nullptr;
};
void queue_kernel(const Configuration& where, std::function<void()> thread);
void queue(Stream* stream, Work work);
[[nodiscard]] Status synchronize(Stream* stream);  // null: the default stream
[[nodiscard]] Status synchronize_all();
[[nodiscard]] Status last_status();  // and forgets it, unless the device is lost
void note(Status status);            // for last_status()

[[nodiscard]] Stream* make_stream();
void remove(Stream* stream);

[[nodiscard]] void* allocate(std::size_t bytes);  // null: no room
void release(void* memory);
[[nodiscard]] std::size_t free_bytes();

[[nodiscard]] std::uint64_t global_timer();  // nanoseconds
void advance(std::uint64_t nanoseconds);

template <class Kernel, class... Arguments>
void launch(const Configuration& where, Kernel kernel, Arguments... arguments) {
  queue_kernel(where, [=]() mutable { kernel(arguments...); });
}

}  // namespace stagecraft::emulation
