#include "tests/calibrate/bench/emulation/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/calibrate/bench/emulation/cuda_runtime.h"

namespace stagecraft::emulation {
namespace {

struct Device {
  Machine machine;
  Stream default_stream;
  std::vector<std::unique_ptr<Stream>> streams;
  std::map<void*, std::size_t> blocks;
  std::uint64_t lowest = ~std::uint64_t{0}, highest = 0;  // addresses that were ever given out
  std::size_t used = 0;
  std::uint64_t now = 1'000'000;
  Status last = Status::kGood;
  std::string lost;

  Device() {
    if (const char* fault = std::getenv("STAGECRAFT_EMULATION_FAULT")) machine.fault = fault;
  }
  void lose(const std::string& why) {
    lost = why;
    last = Status::kLost;
  }
};

Device& device() {
  static Device only;
  return only;
}

// The blocks run one after the other, in the order that is asked for of their threads.
void run_kernel(const Configuration& at, const std::function<void()>& thread) {
  const Order order = machine().order;
  gridDim = at.blocks;
  blockDim = at.threads;
  const auto place = [](unsigned index, const Extent& in) {
    return dim3(index % in.x, index / in.x % in.y, index / in.x / in.y);
  };
  const auto enter = [&](unsigned index) { threadIdx = place(index, at.threads); };
  for (unsigned i = 0; i < at.blocks.count(); ++i) {
    blockIdx = place(order == Order::kForward ? i : at.blocks.count() - 1 - i, at.blocks);
    try {
      run_block(at.threads, order, enter, thread);
    } catch (const Divergence& wrong) {
      device().lose(std::string(at.kernel) + ", block " + std::to_string(i) + ": " + wrong.what());
      return;
    }
  }
  ++machine().launches[at.kernel];
  advance(2000 + at.blocks.count() / 4);
}

Status drain(Stream& stream) {
  while (!stream.queue.empty() && device().lost.empty()) {
    const Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    work();
  }
  return device().lost.empty() ? Status::kGood : Status::kLost;
}

void take_into_digest(const void* memory, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(memory);
  std::uint64_t digest = machine().digest;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at + i, std::min<std::size_t>(8, bytes - i));
    if (word >= device().lowest && word < device().highest)
      word = 0;  // an address: it differs from run to run
    digest = (digest ^ word) * 0x100000001B3ULL;
    digest ^= digest >> 29;
  }
  machine().digest = digest;
}

}  // namespace

Machine& machine() {
  return device().machine;
}

const std::string& lost_why() {
  return device().lost;
}

// The limits are those of every device that the suite is made for.
void queue_kernel(const Configuration& where, std::function<void()> thread) {
  const Extent &grid = where.blocks, &block = where.threads;
  const bool possible = grid.count() > 0 && grid.x <= 0x7FFFFFFFU && grid.y <= 65535 && grid.z <= 65535 &&
                        block.count() > 0 && block.count() <= 1024 && block.z <= 64 &&
                        where.shared <= 227 * 1024;
  if (!possible) {
    device().last = Status::kBadConfiguration;
    return;
  }
  queue(where.stream, [where, thread = std::move(thread)] {
    const std::string name(where.kernel);
    if (!machine().fault.empty() && name.substr(0, name.find('<')) == machine().fault)
      device().lose(name + ": as the test wants it");
    else
      run_kernel(where, thread);
  });
}

void queue(Stream* stream, Work work) {
  Stream& to = stream == nullptr ? device().default_stream : *stream;
  if (!device().lost.empty()) return;
  if (to.capture != nullptr)
    to.capture->nodes.push_back(std::move(work));
  else
    to.queue.push_back(std::move(work));
}

Status synchronize(Stream* stream) {
  return drain(stream == nullptr ? device().default_stream : *stream);
}

Status synchronize_all() {
  (void)drain(device().default_stream);
  for (const auto& stream : device().streams) (void)drain(*stream);
  return device().lost.empty() ? Status::kGood : Status::kLost;
}

Status last_status() {
  const Status last = device().last;
  if (device().lost.empty()) device().last = Status::kGood;
  return last;
}

void note(Status status) {
  if (device().lost.empty()) device().last = status;
}

Stream* make_stream() {
  device().streams.push_back(std::make_unique<Stream>());
  return device().streams.back().get();
}

void remove(Stream* stream) {
  (void)drain(*stream);
  std::erase_if(device().streams, [&](const auto& one) { return one.get() == stream; });
}

// Memory begins where CUDA's does and ends exactly where it was asked to, so that the address sanitizer sees
// the first byte behind it. What was never written is no number that looks right.
void* allocate(std::size_t bytes) {
  Device& d = device();
  void* memory = nullptr;
  if (bytes > free_bytes() || posix_memalign(&memory, 256, bytes) != 0) return nullptr;
  std::memset(memory, 0xA5, bytes);
  d.blocks[memory] = bytes;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  d.lowest = std::min<std::uint64_t>(d.lowest, first);
  d.highest = std::max<std::uint64_t>(d.highest, first + bytes);
  d.used += bytes;
  return memory;
}

void release(void* memory) {
  Device& d = device();
  (void)synchronize_all();
  const auto found = d.blocks.find(memory);
  take_into_digest(memory, found->second);
  d.used -= found->second;
  d.blocks.erase(found);
  std::free(memory);
}

std::size_t free_bytes() {
  return machine().memory - device().used;
}

std::uint64_t global_timer() {
  return device().now += 32;
}

void advance(std::uint64_t nanoseconds) {
  device().now += nanoseconds;
}

}  // namespace stagecraft::emulation
