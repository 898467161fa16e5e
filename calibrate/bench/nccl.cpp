#include "calibrate/bench/nccl.hpp"

#if __has_include(<nccl.h>) && !defined(STAGECRAFT_NO_NCCL)

#include <nccl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

#include "calibrate/bench/harness.hpp"
#include "calibrate/bench/nccl_points.hpp"

namespace stagecraft {
namespace {

void nccl_check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw Unmeasurable(std::string("NCCL, ") + what + ": " + ncclGetErrorString(result) + ": " +
                     ncclGetLastError(nullptr));
}

class Communicator {
 public:
  explicit Communicator(ncclComm_t comm) : comm_(comm) {}
  ~Communicator() {
    if (comm_ != nullptr) (void)ncclCommDestroy(comm_);
  }
  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  [[nodiscard]] ncclComm_t get() const { return comm_; }

 private:
  ncclComm_t comm_;
};

// The device that was current comes back at the end.
class DeviceScope {
 public:
  DeviceScope() { CUDA_CHECK(cudaGetDevice(&device_)); }
  ~DeviceScope() { (void)cudaSetDevice(device_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int device_ = 0;
};

// A rank that this process runs. Members go in the reverse order of their making, on their own device.
struct LocalRank {
  int device = 0, rank = 0;
  Communicator comm{nullptr};
  Stream stream = {};
  DeviceMemory send = {}, receive = {};
};

struct Group {
  int ranks = 1, nodes = 1;
  std::vector<LocalRank> local = {};
  bool leader = true;  // of all groups: its times count
};

struct Call {
  Collective collective = Collective::kAllReduce;
  bool in_place = false;
  std::int64_t bytes = 0;
};

// Where a call reads and writes on one rank.
struct Buffers {
  char *from, *to;
};
Buffers buffers_of(const Call& call, const LocalRank& at, std::int64_t count) {
  char *send = at.send.as<char>(), *receive = at.receive.as<char>();
  if (!call.in_place) return {send, receive};
  if (call.collective == Collective::kAllGather) return {receive + 2 * count * at.rank, receive};
  if (call.collective == Collective::kReduceScatter) return {send, send + 2 * count * at.rank};
  return {receive, receive};
}

void enqueue_on(const Call& call, const LocalRank& at, int ranks, cudaStream_t stream) {
  const std::int64_t count = count_of(call.collective, call.bytes, ranks);
  const auto [from, to] = buffers_of(call, at, count);
  const auto n = static_cast<std::size_t>(count);
  const ncclComm_t comm = at.comm.get();
  switch (call.collective) {
    case Collective::kAllReduce:
      return nccl_check(ncclAllReduce(from, to, n, ncclBfloat16, ncclSum, comm, stream), "all-reduce");
    case Collective::kAllGather:
      return nccl_check(ncclAllGather(from, to, n, ncclBfloat16, comm, stream), "all-gather");
    case Collective::kReduceScatter:
      return nccl_check(ncclReduceScatter(from, to, n, ncclBfloat16, ncclSum, comm, stream),
                        "reduce-scatter");
    case Collective::kBroadcast:
      return nccl_check(ncclBroadcast(from, to, n, ncclBfloat16, 0, comm, stream), "broadcast");
    case Collective::kAllToAll:
      for (int peer = 0; peer < ranks; ++peer) {
        nccl_check(ncclSend(from + 2 * count * peer, n, ncclBfloat16, peer, comm, stream), "send");
        nccl_check(ncclRecv(to + 2 * count * peer, n, ncclBfloat16, peer, comm, stream), "receive");
      }
      return;
    case Collective::kSendReceive:
      nccl_check(ncclSend(from, n, ncclBfloat16, (at.rank + 1) % ranks, comm, stream), "send");
      nccl_check(ncclRecv(to, n, ncclBfloat16, (at.rank + ranks - 1) % ranks, comm, stream), "receive");
      return;
  }
}

void enqueue(const Call& call, const Group& group) {
  nccl_check(ncclGroupStart(), "group start");
  for (const LocalRank& at : group.local) enqueue_on(call, at, group.ranks, at.stream.get());
  nccl_check(ncclGroupEnd(), "group end");
}

void synchronize(const Group& group) {
  for (const LocalRank& at : group.local) {
    CUDA_CHECK(cudaSetDevice(at.device));
    CUDA_CHECK(cudaStreamSynchronize(at.stream.get()));
  }
}

// bf16 of 0, 1, 2, 3: the upper half of fp32.
std::uint16_t bf16_bits(int value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}
int integer_of(std::uint16_t bits) {
  const float value = std::bit_cast<float>(std::uint32_t{bits} << 16);
  return value >= 0 && value < 1024 ? static_cast<int>(value) : -1;  // NaN: -1
}

// Element i of `to` becomes start_value(i, rank): one period of the pattern, then doubled.
void fill(char* to, std::int64_t elements, int rank, cudaStream_t stream) {
  constexpr std::int64_t kPeriod = 4096;
  std::array<std::uint16_t, kPeriod> pattern;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    pattern[i] = bf16_bits(start_value(static_cast<std::int64_t>(i), rank));
  const std::int64_t bytes = 2 * elements;
  std::int64_t filled = std::min<std::int64_t>(bytes, sizeof(pattern));
  CUDA_CHECK(
      cudaMemcpyAsync(to, pattern.data(), static_cast<std::size_t>(filled), cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));  // the pattern is on this stack
  for (; filled < bytes; filled *= 2)
    CUDA_CHECK(cudaMemcpyAsync(to + filled, to, static_cast<std::size_t>(std::min(filled, bytes - filled)),
                               cudaMemcpyDeviceToDevice, stream));
}

void prepare(const Call& call, const Group& group) {
  const std::int64_t count = count_of(call.collective, call.bytes, group.ranks);
  const bool whole =
      call.collective == Collective::kReduceScatter || call.collective == Collective::kAllToAll;
  for (const LocalRank& at : group.local) {
    CUDA_CHECK(cudaSetDevice(at.device));
    CUDA_CHECK(
        cudaMemsetAsync(at.receive.data(), 0xFF, static_cast<std::size_t>(call.bytes), at.stream.get()));
    fill(buffers_of(call, at, count).from, whole ? count * group.ranks : count, at.rank, at.stream.get());
  }
  synchronize(group);
}

// Both ends of every rank's part of the result; exact.
void require_right(const Call& call, const Group& group) {
  if (group.ranks > kMostExactRanks) return;
  const std::int64_t count = count_of(call.collective, call.bytes, group.ranks);
  const std::int64_t total = result_count(call.collective, count, group.ranks);
  const std::int64_t window = std::min<std::int64_t>(64, count);
  for (const LocalRank& at : group.local) {
    CUDA_CHECK(cudaSetDevice(at.device));
    const char* result = buffers_of(call, at, count).to;
    for (std::int64_t part = 0; part < total; part += count)
      for (const std::int64_t first : {part, part + count - window}) {
        std::vector<std::uint16_t> got(static_cast<std::size_t>(window));
        CUDA_CHECK(cudaMemcpyAsync(got.data(), result + 2 * first, 2 * got.size(), cudaMemcpyDeviceToHost,
                                   at.stream.get()));
        CUDA_CHECK(cudaStreamSynchronize(at.stream.get()));
        for (std::int64_t i = 0; i < window; ++i) {
          const int wanted = expected_value(call.collective, {at.rank, group.ranks, count, first + i});
          const int value = integer_of(got[static_cast<std::size_t>(i)]);
          if (value == wanted) continue;
          throw WrongResult(std::string(name_of(call.collective)) + " of " + std::to_string(call.bytes) +
                            " bytes: rank " + std::to_string(at.rank) + ", element " +
                            std::to_string(first + i) + " is " + std::to_string(value) + ", not " +
                            std::to_string(wanted));
        }
      }
  }
}

// All ranks at one point of time, as near as a collective brings them.
void barrier(const Group& group) {
  enqueue({.collective = Collective::kAllReduce, .bytes = 16}, group);
  synchronize(group);
}

// Seconds of one call, `repeats` times. All ranks of all processes run the same number of calls.
std::vector<double> times_of(const Call& call, const Group& group) {
  const TimingPlan plan = timing_plan(call.bytes);
  const LocalRank& clock = group.local.front();
  CUDA_CHECK(cudaSetDevice(clock.device));
  const Event start, stop;
  std::vector<double> seconds;
  for (int repeat = -3; repeat < plan.repeats; ++repeat) {  // three to warm up
    barrier(group);
    CUDA_CHECK(cudaSetDevice(clock.device));
    start.record(clock.stream.get());
    for (int i = 0; i < plan.calls; ++i) enqueue(call, group);
    CUDA_CHECK(cudaSetDevice(clock.device));
    stop.record(clock.stream.get());
    synchronize(group);
    if (repeat >= 0) seconds.push_back(seconds_between(start, stop) / plan.calls);
  }
  return seconds;
}

void allocate(Group& group, std::int64_t bytes) {
  for (LocalRank& at : group.local) {
    CUDA_CHECK(cudaSetDevice(at.device));
    at.stream = Stream();
    at.send = DeviceMemory(static_cast<std::size_t>(bytes));
    at.receive = DeviceMemory(static_cast<std::size_t>(bytes));
  }
}

Group one_process_group(int ranks) {
  Group group{.ranks = ranks};
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(ranks));
  nccl_check(ncclCommInitAll(comms.data(), ranks, nullptr), "init all");
  for (int r = 0; r < ranks; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    group.local.push_back(
        LocalRank{.device = r, .rank = r, .comm = Communicator(comms[static_cast<std::size_t>(r)])});
  }
  return group;
}

constexpr std::chrono::minutes kWaitForRankZero{5};  // hosts of a job start minutes apart

ncclUniqueId exchange_id(const NcclJob& job, const std::string& file) {
  ncclUniqueId id;
  if (job.rank == 0) {
    if (std::filesystem::exists(file)) throw Unmeasurable(file + " is left from an earlier job: remove it");
    nccl_check(ncclGetUniqueId(&id), "unique id");
    std::ofstream(file + ".part", std::ios::binary).write(id.internal, sizeof(id.internal));
    std::filesystem::rename(file + ".part", file);  // seen whole or not at all
    return id;
  }
  const auto give_up = std::chrono::steady_clock::now() + kWaitForRankZero;
  while (!std::filesystem::exists(file)) {
    if (std::chrono::steady_clock::now() > give_up)
      throw Unmeasurable("no " + file + " from rank 0 in " + std::to_string(kWaitForRankZero.count()) +
                         " minutes");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::ifstream in(file, std::ios::binary);
  if (!in.read(id.internal, sizeof(id.internal))) throw Unmeasurable("cannot read " + file);
  return id;
}

// All ranks meet, then part into groups of `ranks` neighbours on `nodes` hosts, which all work at the same time.
Group job_group(const NcclJob& job, int ranks, int nodes, const std::string& name) {
  const std::string file = job.id_file + "." + name;
  const ncclUniqueId id = exchange_id(job, file);
  ncclComm_t all = nullptr, part = nullptr;
  nccl_check(ncclCommInitRank(&all, job.ranks, id, job.rank), "init rank");
  if (job.rank == 0) std::filesystem::remove(file);  // all have read it: init waits for them
  const Communicator whole(all);
  nccl_check(ncclCommSplit(all, job.rank / ranks, job.rank, &part, nullptr), "split");
  Group group{.ranks = ranks, .nodes = nodes, .leader = job.rank == 0};
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  group.local.push_back(LocalRank{.device = device, .rank = job.rank % ranks, .comm = Communicator(part)});
  return group;
}

Sample sample_of(const Call& call, int ranks, int nodes, const std::string& process) {
  Sample sample;
  sample.family = "nccl";
  sample.op = name_of(call.collective);
  sample.shape = {{"bytes", call.bytes}, {"ranks", ranks}, {"nodes", nodes}};
  sample.tags = {
      {"dtype", "bf16"}, {"place", call.in_place ? "in" : "out"}, {"algorithm", "any"}, {"process", process}};
  sample.bytes = static_cast<double>(call.bytes);
  return sample;
}

std::vector<Call> calls_of(Collective collective, const std::vector<std::int64_t>& sizes) {
  std::vector<Call> calls;
  for (const std::int64_t bytes : sizes)
    for (const bool in_place : {false, true})
      if (!in_place || has_in_place(collective)) calls.push_back({collective, in_place, bytes});
  return calls;
}

struct Plan {
  std::vector<Call> calls;
  std::string process;
};

// The first call is the item's own, the others are `more`.
Measured measure(Harness& harness, Group group, const Plan& plan) {
  std::int64_t largest = 0;
  for (const Call& call : plan.calls) largest = std::max(largest, call.bytes);
  allocate(group, largest);
  const double max_error = group.ranks > kMostExactRanks ? -1 : 0;
  Measured result;
  for (const Call& call : plan.calls) {
    prepare(call, group);
    enqueue(call, group);
    synchronize(group);
    require_right(call, group);
    if (harness.check_only()) {
      result.max_error = max_error;
      continue;
    }
    const std::vector<double> seconds = times_of(call, group);
    if (!group.leader) continue;
    Sample sample = sample_of(call, group.ranks, group.nodes, plan.process);
    sample.median_s = median(seconds);
    sample.min_s = *std::min_element(seconds.begin(), seconds.end());
    sample.spread = relative_spread(seconds);
    sample.repeats = static_cast<int>(seconds.size());
    sample.max_error = max_error;
    if (result.repeats == 0)
      result = {.median_s = sample.median_s,
                .min_s = sample.min_s,
                .spread = sample.spread,
                .repeats = sample.repeats,
                .max_error = sample.max_error};
    else
      result.more.push_back(sample);
  }
  return result;
}

double value_of(Collective collective) {
  const bool common = collective == Collective::kAllReduce || collective == Collective::kAllGather ||
                      collective == Collective::kReduceScatter;
  return common ? 60 : 40;
}

// What one GPU can honestly tell: what a call costs where nothing is exchanged, and a copy.
Measured measure_one_rank(Harness& harness, const Call& call) {
  const DeviceScope scope;
  ncclComm_t comm = nullptr;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  nccl_check(ncclCommInitAll(&comm, 1, &device), "init all");
  Group group;
  group.local.push_back(LocalRank{.device = device, .rank = 0, .comm = Communicator(comm)});
  allocate(group, call.bytes);
  prepare(call, group);
  enqueue(call, group);
  synchronize(group);
  require_right(call, group);
  Measured measured = harness.time([&](cudaStream_t stream) {
    nccl_check(ncclGroupStart(), "group start");
    enqueue_on(call, group.local[0], 1, stream);
    nccl_check(ncclGroupEnd(), "group end");
  });
  measured.max_error = 0;
  return measured;
}

WorkItem one_rank_item(const Call& call) {
  Sample sample = sample_of(call, 1, 1, "one");
  const bool self_copy = call.collective == Collective::kSendReceive;
  sample.op = self_copy ? "nccl_self_copy" : "nccl_one_rank_overhead";
  sample.tags["collective"] = name_of(call.collective);
  sample.bytes = call.in_place ? 0 : 2 * static_cast<double>(call.bytes);  // through memory, read and written
  WorkItem item{.prototype = sample, .value = 4, .estimated_seconds = 0.6};
  item.run = [call](Harness& harness) { return measure_one_rank(harness, call); };
  return item;
}

std::vector<WorkItem> one_gpu_items() {
  std::vector<WorkItem> items;
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kSendReceive})
    for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 20, std::int64_t{1} << 28})
      for (const Call& call : calls_of(collective, {bytes})) items.push_back(one_rank_item(call));
  return items;
}

int visible_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();  // no driver: the plan of a machine with one GPU is listed
  return 1;
}

WorkItem one_process_item(int ranks, const std::vector<Call>& calls) {
  WorkItem item{.prototype = sample_of(calls.front(), ranks, 1, "one"),
                .value = value_of(calls.front().collective)};
  item.estimated_seconds = 1.5 + 0.08 * static_cast<double>(calls.size());
  item.run = [ranks, calls](Harness& harness) {
    const DeviceScope scope;
    return measure(harness, one_process_group(ranks), {calls, "one"});
  };
  return item;
}

}  // namespace

std::vector<WorkItem> nccl_items(const Device&) {
  const int gpus = visible_gpus();
  if (gpus < 2) return one_gpu_items();
  std::vector<WorkItem> items;
  for (const int ranks : group_sizes(gpus))
    for (const Collective collective : kCollectives)
      items.push_back(one_process_item(ranks, calls_of(collective, collective_sizes())));
  return items;
}

std::vector<WorkItem> nccl_job_items(const Device&, const NcclJob& job) {
  std::vector<WorkItem> items;
  for (const int ranks : group_sizes(job.ranks)) {
    const std::optional<int> nodes = nodes_of_group(job, ranks);
    if (!nodes) continue;
    for (const Collective collective : kCollectives) {
      const std::vector<Call> calls = calls_of(collective, collective_sizes());
      WorkItem item{.prototype = sample_of(calls.front(), ranks, *nodes, "each"),
                    .value = value_of(collective)};
      // The wait is a part of it: the watchdog barks after ten times the estimate.
      item.estimated_seconds = 2 + 0.1 * static_cast<double>(calls.size()) +
                               std::chrono::duration<double>(kWaitForRankZero).count() / 10;
      const std::string name = std::string(name_of(collective)) + "." + std::to_string(ranks);
      item.run = [job, ranks, nodes = *nodes, calls, name](Harness& harness) {
        return measure(harness, job_group(job, ranks, nodes, name), {calls, "each"});
      };
      items.push_back(std::move(item));
    }
  }
  return items;
}

std::optional<WorkItem> nccl_item_for(const Sample& wanted, const Device&) {
  const auto bytes = wanted.shape.find("bytes"), ranks = wanted.shape.find("ranks");
  if (wanted.family != "nccl" || bytes == wanted.shape.end() || ranks == wanted.shape.end())
    return std::nullopt;
  if (bytes->second < 1024 || ranks->second < 2 || ranks->second > visible_gpus()) return std::nullopt;
  const auto place = wanted.tags.find("place");
  const bool in_place = place != wanted.tags.end() && place->second == "in";
  for (const Collective collective : kCollectives) {
    if (wanted.op != name_of(collective) || (in_place && !has_in_place(collective))) continue;
    WorkItem item =
        one_process_item(static_cast<int>(ranks->second), {{collective, in_place, bytes->second}});
    // What was said and what would be measured must be the same point.
    const bool same = std::ranges::includes(item.prototype.shape, wanted.shape) &&
                      std::ranges::includes(item.prototype.tags, wanted.tags);
    return same ? std::optional(std::move(item)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace stagecraft

#else

namespace stagecraft {

std::vector<WorkItem> nccl_items(const Device&) {
  return {};
}
std::vector<WorkItem> nccl_job_items(const Device&, const NcclJob&) {
  return {};
}
std::optional<WorkItem> nccl_item_for(const Sample&, const Device&) {
  return std::nullopt;
}

}  // namespace stagecraft

#endif
