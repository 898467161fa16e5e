// What the device and its driver cost beside arithmetic: memory and host copies, launches, graphs,
// allocations.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "calibrate/bench/for_each_element.cuh"
#include "calibrate/bench/harness.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

__global__ void empty_kernel() {}

__global__ void copy_kernel(const uint4* from, uint4* to, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {  // four loads in flight
    const uint4 a = from[i], b = from[i + stride], c = from[i + 2 * stride], d = from[i + 3 * stride];
    to[i] = a;
    to[i + stride] = b;
    to[i + 2 * stride] = c;
    to[i + 3 * stride] = d;
  }
  for (; i < count; i += stride) to[i] = from[i];
}

__global__ void read_kernel(const uint4* from, std::int64_t count, unsigned* sums) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned sum = 0;
#pragma unroll 4
  for (std::int64_t i = first; i < count; i += stride) {
    const uint4 four = from[i];
    sum += four.x + four.y + four.z + four.w;
  }
  sums[first] = sum;
}

__global__ void write_kernel(uint4* to, std::int64_t count, unsigned value) {
  for_each_element(count, [&](std::int64_t i) { to[i] = make_uint4(value, value, value, value); });
}

using Shape = std::map<std::string, std::int64_t>;
using Tags = std::map<std::string, std::string>;

struct Row {
  std::string op;
  Shape shape;
  Tags tags;
  double bytes = 0;
  double value = 0;
  double seconds = 0;
  std::function<Measured(Harness&)> run;
};

WorkItem item_of(Row row) {
  WorkItem item;
  item.prototype.family = "system";
  item.prototype.op = std::move(row.op);
  item.prototype.shape = std::move(row.shape);
  item.prototype.tags = std::move(row.tags);
  item.prototype.bytes = row.bytes;
  item.value = row.value;
  item.estimated_seconds = row.seconds;
  item.run = std::move(row.run);
  return item;
}

// By the host's clock: `once` returns the seconds of one execution.
Measured by_host_clock(Harness& harness, const std::function<double()>& once) {
  if (harness.check_only()) return {};
  StopRule stop{.target = 0.01, .min_repeats = 15, .max_repeats = 200, .max_seconds = 0.5};
  stop.max_seconds *= harness.effort();
  for (int i = 0; i < 3; ++i) (void)once();
  std::vector<double> seconds;
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (!enough(seconds, spent(), stop)) seconds.push_back(once());
  Measured measured;
  measured.median_s = median(seconds);
  measured.min_s = *std::ranges::min_element(seconds);
  measured.spread = relative_spread(seconds);
  measured.repeats = static_cast<int>(seconds.size());
  return measured;
}

double host_seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A copy must give back every bit: compared as integers, a random subset and both ends.
double check_copy(const Harness& harness, const void* from, const void* to, std::int64_t bytes) {
  const auto where = Harness::random_indices(bytes / 4, 4096, 31);
  const auto expected = harness.read(from, Dtype::kInt32, where);
  const auto values = harness.read(to, Dtype::kInt32, where);
  return Harness::require_correct("copy",
                                  worst_error(values, expected, std::vector<double>(values.size(), 0.5)));
}

unsigned grid(const Harness& harness) {
  return static_cast<unsigned>(16 * harness.device().sms);
}

Measured run_copy(Harness& harness, std::int64_t bytes, bool by_kernel) {
  const DeviceMemory from = harness.allocate(bytes), to = harness.allocate(bytes);
  harness.fill_integers(from.as<std::int32_t>(), bytes / 4, 1 << 30, 32);
  harness.poison(to);
  const Enqueue op = [&](cudaStream_t stream) {
    if (by_kernel)
      copy_kernel<<<grid(harness), 256, 0, stream>>>(from.as<uint4>(), to.as<uint4>(), bytes / 16);
    else
      CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream));
    CUDA_CHECK(cudaGetLastError());
  };
  op(harness.stream());
  const double error = check_copy(harness, from.data(), to.data(), bytes);
  Measured measured = harness.time(op);
  measured.max_error = error;
  return measured;
}

Measured run_read(Harness& harness, std::int64_t bytes) {
  const DeviceMemory from = harness.allocate(bytes), sums = harness.allocate(4LL * 256 * grid(harness));
  harness.fill_integers(from.as<std::int32_t>(), bytes / 4, 1 << 30, 33);
  return harness.time([&](cudaStream_t stream) {
    read_kernel<<<grid(harness), 256, 0, stream>>>(from.as<uint4>(), bytes / 16, sums.as<unsigned>());
    CUDA_CHECK(cudaGetLastError());
  });
}

Measured run_write(Harness& harness, std::int64_t bytes) {
  const DeviceMemory to = harness.allocate(bytes);
  return harness.time([&](cudaStream_t stream) {
    write_kernel<<<grid(harness), 256, 0, stream>>>(to.as<uint4>(), bytes / 16, 0x5A5A1234U);
    CUDA_CHECK(cudaGetLastError());
  });
}

void add_memory(std::vector<WorkItem>& items) {
  for (std::int64_t bytes = 64 << 10; bytes <= 4096 * kMiB; bytes *= 4) {
    const auto traffic = static_cast<double>(bytes);
    const double value = bytes == 1024 * kMiB ? 92 : bytes >= 16 * kMiB ? 80 : 55;
    const double seconds = 0.3 + traffic / 10e9;
    const Tags cold = {{"cache", "cold"}};
    items.push_back(item_of({"copy",
                             {{"bytes", bytes}},
                             {{"cache", "cold"}, {"method", "kernel"}},
                             2 * traffic,
                             value,
                             seconds,
                             [=](Harness& h) { return run_copy(h, bytes, true); }}));
    items.push_back(item_of({"copy",
                             {{"bytes", bytes}},
                             {{"cache", "cold"}, {"method", "memcpy"}},
                             2 * traffic,
                             value - 5,
                             seconds,
                             [=](Harness& h) { return run_copy(h, bytes, false); }}));
    if (bytes < 64 * kMiB) continue;
    items.push_back(item_of({"read", {{"bytes", bytes}}, cold, traffic, value - 15, seconds, [=](Harness& h) {
                               return run_read(h, bytes);
                             }}));
    items.push_back(
        item_of({"write", {{"bytes", bytes}}, cold, traffic, value - 15, seconds, [=](Harness& h) {
                   return run_write(h, bytes);
                 }}));
  }
}

// Host time of one launch, with the stream held so that no launch waits for room or finds the device idle.
Measured run_launch(Harness& harness) {
  constexpr int kLaunches = 200;
  return by_host_clock(harness, [&] {
    harness.spin(harness.stream(), 2e-3);
    const double seconds = host_seconds([&] {
      for (int i = 0; i < kLaunches; ++i) empty_kernel<<<1, 32, 0, harness.stream()>>>();
    });
    CUDA_CHECK(cudaGetLastError());
    harness.synchronize();
    return seconds / kLaunches;
  });
}

void launch_empty(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
}

class Graph {
 public:
  Graph(const Harness& harness, int kernels) {
    const cudaStream_t stream = harness.stream();
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) launch_empty(stream);
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph_));
    CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    CUDA_CHECK(cudaGraphUpload(executable_, stream));
    harness.synchronize();
  }
  ~Graph() {
    if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

Measured run_graph(Harness& harness, int kernels, bool on_host) {
  const Graph graph(harness, kernels);
  if (!on_host)
    return harness.time([&](cudaStream_t stream) { graph.launch(stream); }, {.l2 = L2::kHot, .launches = 16});
  return by_host_clock(harness, [&] {
    constexpr int kLaunches = 10;
    harness.spin(harness.stream(), 2e-3);
    const double seconds = host_seconds([&] {
      for (int i = 0; i < kLaunches; ++i) graph.launch(harness.stream());
    });
    harness.synchronize();
    return seconds / kLaunches;
  });
}

void add_launches(std::vector<WorkItem>& items) {
  items.push_back(item_of({"launch", {}, {{"clock", "host"}}, 0, 84, 0.5, run_launch}));
  // A kernel that does nothing, in a busy stream and alone between two events: the difference is what a
  // stand-alone measurement of a short kernel has on top.
  items.push_back(
      item_of({"empty_kernel", {}, {{"clock", "device"}, {"stream", "busy"}}, 0, 84, 0.5, [](Harness& h) {
                 return h.time(launch_empty, {.l2 = L2::kHot, .executions = 100});
               }}));
  items.push_back(
      item_of({"empty_kernel", {}, {{"clock", "device"}, {"stream", "alone"}}, 0, 84, 0.5, [](Harness& h) {
                 return h.time(launch_empty);
               }}));
  for (const int kernels : {1, 16, 128})
    for (const bool on_host : {true, false})
      items.push_back(item_of({"graph_launch",
                               {{"kernels", kernels}},
                               {{"clock", on_host ? "host" : "device"}},
                               0,
                               63,
                               0.7,
                               [=](Harness& h) { return run_graph(h, kernels, on_host); }}));
}

// Pageable memory is copied by the host through a buffer of the driver, so a held stream would hold the host
// too: its time is the host's, from call to completion. Pinned copies are timed on the device.
Measured run_host_copy(Harness& harness, std::int64_t bytes, bool to_device, bool pinned) {
  const auto size = static_cast<std::size_t>(bytes);
  const DeviceMemory device = harness.allocate(bytes);
  std::unique_ptr<PinnedMemory> locked = pinned ? std::make_unique<PinnedMemory>(size) : nullptr;
  std::vector<char> paged(pinned ? 0 : size);
  char* const host = pinned ? locked->as<char>() : paged.data();
  for (std::size_t i = 0; i < size; ++i)
    host[i] = static_cast<char>(i * 2654435761U >> 13);  // also touches each page
  harness.upload(device, host);
  void* const to = to_device ? device.data() : host;
  const void* const from = to_device ? host : device.data();
  const Enqueue copy = [&](cudaStream_t stream) {
    CUDA_CHECK(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream));
  };
  if (pinned) return harness.time(copy, {.l2 = L2::kHot});
  return by_host_clock(harness, [&] {
    return host_seconds([&] {
      copy(harness.stream());
      harness.synchronize();
    });
  });
}

void add_host_copies(std::vector<WorkItem>& items) {
  for (const std::int64_t bytes : {std::int64_t{64} << 10, kMiB, 16 * kMiB, 256 * kMiB})
    for (const bool pinned : {true, false})
      for (const bool to_device : {true, false})
        items.push_back(item_of({to_device ? "host_to_device" : "device_to_host",
                                 {{"bytes", bytes}},
                                 {{"memory", pinned ? "pinned" : "pageable"}},
                                 static_cast<double>(bytes),
                                 pinned && bytes >= 16 * kMiB ? 68.0 : 44.0,
                                 1.0 + static_cast<double>(bytes) / 500e6,
                                 [=](Harness& h) { return run_host_copy(h, bytes, to_device, pinned); }}));
}

std::int64_t free_memory() {
  std::size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
}

// cudaMalloc of one size, `count` times: seconds of a call, and as `bytes` what each took from free memory.
Measured run_allocate(Harness& harness, std::int64_t bytes, int count) {
  if (harness.check_only()) return {};
  if (bytes * count > free_memory() / 2) throw Unmeasurable("too little free memory");
  std::vector<double> seconds;
  std::vector<DeviceMemory> held;
  const std::int64_t before = free_memory();
  for (int i = 0; i < count; ++i)
    seconds.push_back(host_seconds([&] { held.emplace_back(static_cast<std::size_t>(bytes)); }));
  Measured measured;
  measured.bytes = static_cast<double>(std::max<std::int64_t>(before - free_memory(), 0)) / count;
  measured.median_s = median(seconds);
  measured.min_s = *std::ranges::min_element(seconds);
  measured.spread = relative_spread(seconds);
  measured.repeats = count;
  return measured;
}

void add_allocations(std::vector<WorkItem>& items) {
  struct Request {
    std::int64_t bytes;
    int count;
  };
  for (const Request r : {Request{1, 8192}, Request{4097, 2048}, Request{kMiB, 64}, Request{kMiB + 1, 64},
                          Request{2 * kMiB + 1, 64}, Request{64 * kMiB + 1, 16}, Request{1024 * kMiB + 1, 6}})
    items.push_back(item_of({"allocate", {{"bytes", r.bytes}}, {}, 0, 46, 0.2, [=](Harness& h) {
                               return run_allocate(h, r.bytes, r.count);
                             }}));
}

}  // namespace

std::vector<WorkItem> system_items(const Device&) {
  std::vector<WorkItem> items;
  add_memory(items);
  add_launches(items);
  add_host_copies(items);
  add_allocations(items);
  return items;
}

}  // namespace stagecraft
