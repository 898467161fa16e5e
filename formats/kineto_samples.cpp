#include "formats/kineto_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "calibrate/samples/statistics.hpp"
#include "formats/input_text.hpp"
#include "formats/kineto_attention.hpp"
#include "formats/kineto_kernels.hpp"
#include "formats/kineto_memory_work.hpp"

namespace stagecraft {
namespace {

constexpr const char* kSource = "profile of a training run";

// Executions of one point, keyed so that traces of several ranks match.
struct Executions {
  Sample point;
  std::map<std::string, double> seconds;  // the shortest of all ranks
  std::set<std::size_t> traces;
};

// Executions of operators: their work, and the time of all their kernels: a split-k sum, a bias.
template <class Work>
struct CallOf {
  Work work;
  Duration time{};
};
template <class Work>
using CallsOf = std::map<std::int64_t, CallOf<Work>>;

template <class Work>
CallOf<Work>& add_time(CallsOf<Work>& calls, const KinetoKernel& kernel, const Work& work) {
  CallOf<Work>& call = calls.try_emplace(kernel.call, CallOf<Work>{.work = work}).first->second;
  call.time += kernel.length;
  return call;
}

// What the kernels of one trace did.
struct TraceCalls {
  CallsOf<KinetoProduct> products;
  CallsOf<KinetoAttention> attention;
  CallsOf<KinetoMemoryWork> memory;
  std::map<std::string, int> collectives;  // executions of a kind in a group and step
};

class SampleCollector {
 public:
  explicit SampleCollector(int gpus_per_node) : gpus_per_node_(gpus_per_node) {}

  void add(std::size_t index, const MeasuredTrace& measured) {
    TraceCalls calls;
    for (const KinetoKernel& kernel : measured.trace.kernels)
      if (std::ranges::find(measured.steps, kernel.step) != measured.steps.end())
        add_kernel(index, measured.trace, kernel, calls);
    take_calls(index, calls.products, "products without a time");
    take_calls(index, calls.attention, "attention without a time");
    take_calls(index, calls.memory, "memory-bound kernels without a time");
  }

  [[nodiscard]] KinetoSamples result(const SampleSetup& setup, const std::string& date) const {
    KinetoSamples out{.samples = {}, .unused = unused_};
    for (const auto& [key, executions] : points_) {
      Sample sample = executions.point;
      std::vector<double> seconds;
      for (const auto& [id, time] : executions.seconds) seconds.push_back(time);
      sample.median_s = median(seconds);
      sample.min_s = *std::ranges::min_element(seconds);
      sample.spread = relative_spread(seconds);
      sample.repeats = static_cast<int>(seconds.size());
      sample.max_error = -1;
      sample.setup = setup;
      sample.date = date;
      if (sample.family == "nccl" && executions.traces.size() > 1) {
        sample.tags["waiting"] = "shortest of the ranks seen";
        sample.tags["seen_ranks"] = std::to_string(executions.traces.size());
      }
      out.samples.push_back(std::move(sample));
    }
    return out;
  }

 private:
  void take(Sample point, const std::string& execution, double seconds, std::size_t trace) {
    std::string key = sample_key(point);
    Executions& executions =
        points_
            .try_emplace(std::move(key), Executions{.point = std::move(point), .seconds = {}, .traces = {}})
            .first->second;
    const auto [at, is_new] = executions.seconds.emplace(execution, seconds);
    if (!is_new) at->second = std::min(at->second, seconds);
    executions.traces.insert(trace);
  }

  void add_kernel(std::size_t index, const KinetoTrace& trace, const KinetoKernel& kernel, TraceCalls& calls);
  void add_product(const KinetoTrace& trace, const KinetoKernel& kernel, TraceCalls& calls);
  void add_attention(const KinetoTrace& trace, const KinetoKernel& kernel, TraceCalls& calls);
  void add_memory_work(const KinetoTrace& trace, const KinetoKernel& kernel, TraceCalls& calls);
  void add_collective(std::size_t index, const KinetoTrace& trace, const KinetoKernel& kernel,
                      TraceCalls& calls);
  template <class Work>
  void take_calls(std::size_t index, const CallsOf<Work>& calls, const char* without_time);
  [[nodiscard]] int nodes_of(const std::vector<int>& ranks) const;

  int gpus_per_node_;
  std::map<std::string, Executions> points_;
  std::map<std::string, std::int64_t> unused_;
};

Sample training_sample(std::string_view family, std::string_view op) {
  Sample sample;
  sample.family = family;
  sample.op = op;
  sample.tags = {{"load", "training"}, {"source", kSource}};
  return sample;
}

Sample point_of(const KinetoProduct& product) {
  Sample sample = training_sample("gemm", "gemm");
  sample.shape = {{"m", product.m}, {"n", product.n}, {"k", product.k}, {"batch", product.batch}};
  sample.tags["dtype"] = product.dtype;
  sample.tags["layout"] =
      product.layout ? kGemmLayoutNames[static_cast<std::size_t>(*product.layout)] : "unknown";
  const auto m = static_cast<double>(product.m), n = static_cast<double>(product.n),
             k = static_cast<double>(product.k), batch = static_cast<double>(product.batch);
  sample.flops = 2 * m * n * k * batch;
  return sample;
}

// Operands as the suite counts them: Q, K, V and the output, twice backward, and a statistic a row in fp32.
Sample point_of(const KinetoAttention& a) {
  Sample sample = training_sample("attention", a.backward ? "flash_backward" : "flash_forward");
  sample.shape = {{"batch", a.batch},
                  {"heads", a.heads},
                  {"kv_heads", a.kv_heads},
                  {"sequence", a.queries},
                  {"head_size", a.head_size}};
  sample.tags["dtype"] = a.dtype;
  sample.tags["causal"] = a.causal ? "true" : "false";
  sample.tags["implementation"] = a.implementation;
  const auto tokens = static_cast<double>(a.batch) * static_cast<double>(a.queries),
             heads = static_cast<double>(a.heads), kv_heads = static_cast<double>(a.kv_heads),
             size = static_cast<double>(a.head_size);
  const double forward = 4 * tokens * static_cast<double>(a.keys) * heads * size * (a.causal ? 0.5 : 1);
  const double element = a.dtype == "fp32" ? 4 : 2;
  sample.flops = a.backward ? 2.5 * forward : forward;
  sample.bytes =
      (a.backward ? 2 : 1) * element * tokens * size * (2 * heads + 2 * kv_heads) + 4 * tokens * heads;
  return sample;
}

Sample point_of(const KinetoMemoryWork& work) {
  Sample sample = training_sample("kernel", work.op);
  sample.shape = work.shape;
  sample.tags["dtype"] = work.dtype;
  sample.tags["variant"] = "fused";
  sample.bytes = work.bytes;
  return sample;
}

template <class Work>
void SampleCollector::take_calls(std::size_t index, const CallsOf<Work>& calls, const char* without_time) {
  for (const auto& [call, execution] : calls) {
    if (execution.time <= Duration::zero())
      ++unused_[without_time];
    else
      take(point_of(execution.work), fmt::format("{} {}", index, call), to_seconds(execution.time), index);
  }
}

// Over PCIe or between GPUs: not the memory of this one.
bool leaves_device(const KinetoTrace& trace, const KinetoKernel& kernel) {
  return kernel.work == DeviceWork::kCopy && trace.name_of(kernel).find("DtoD") == std::string::npos;
}

void SampleCollector::add_kernel(std::size_t index, const KinetoTrace& trace, const KinetoKernel& kernel,
                                 TraceCalls& calls) {
  switch (work_kind(trace, kernel)) {
    case WorkKind::kProduct:
      return add_product(trace, kernel, calls);
    case WorkKind::kAttention:
      return add_attention(trace, kernel, calls);
    case WorkKind::kCommunication:
      return add_collective(index, trace, kernel, calls);
    case WorkKind::kMemory:
    case WorkKind::kLoss:
    case WorkKind::kOptimizer:
    case WorkKind::kCopy:
      return add_memory_work(trace, kernel, calls);
  }
}

void SampleCollector::add_product(const KinetoTrace& trace, const KinetoKernel& kernel, TraceCalls& calls) {
  const std::optional<KinetoProduct> product = product_of(trace, kernel);
  if (!product) {
    ++unused_["products without shapes"];
    return;
  }
  KinetoProduct& known = add_time(calls.products, kernel, *product).work;
  if (!known.layout) known.layout = product->layout;  // of its other kernel
}

void SampleCollector::add_attention(const KinetoTrace& trace, const KinetoKernel& kernel, TraceCalls& calls) {
  const AttentionOrReason read = attention_of(trace, kernel);
  const auto* attention = std::get_if<KinetoAttention>(&read);
  if (attention == nullptr)
    ++unused_[std::get<std::string>(read)];
  else if (attention->queries != attention->keys || attention->head_size != attention->value_size)
    ++unused_["attention of unequal queries and keys, or heads of two sizes"];
  else
    add_time(calls.attention, kernel, *attention);
}

void SampleCollector::add_memory_work(const KinetoTrace& trace, const KinetoKernel& kernel,
                                      TraceCalls& calls) {
  if (leaves_device(trace, kernel)) {
    ++unused_["copies that leave the GPU's memory"];
    return;
  }
  const MemoryWorkOrReason read = memory_work_of(trace, kernel);
  if (const auto* work = std::get_if<KinetoMemoryWork>(&read))
    add_time(calls.memory, kernel, *work);
  else
    ++unused_[std::get<std::string>(read)];
}

int SampleCollector::nodes_of(const std::vector<int>& ranks) const {
  if (gpus_per_node_ <= 0) return 0;
  std::set<int> nodes;
  for (const int rank : ranks) nodes.insert(rank / gpus_per_node_);
  return static_cast<int>(nodes.size());
}

void SampleCollector::add_collective(std::size_t index, const KinetoTrace& trace, const KinetoKernel& kernel,
                                     TraceCalls& calls) {
  const KinetoTraffic traffic = traffic_of(trace, kernel);
  if (!traffic.kind || !traffic.size || traffic.ranks < 2 || kernel.length <= Duration::zero()) {
    ++unused_["communication without kind, size or ranks"];
    return;
  }
  const auto& said = trace.collectives[static_cast<std::size_t>(kernel.collective)];
  if (said.name.find("recv") != std::string::npos) {
    ++unused_["receives, which wait for the sender"];
    return;
  }
  Sample point = training_sample("nccl", kCollectiveNames[static_cast<std::size_t>(*traffic.kind)]);
  point.shape = {{"bytes", traffic.size->count()}, {"ranks", traffic.ranks}, {"nodes", nodes_of(said.ranks)}};
  point.tags["waiting"] = "for the slowest rank included";
  point.bytes = static_cast<double>(traffic.size->count()) * bus_factor(*traffic.kind, traffic.ranks);
  const auto step = trace.steps[static_cast<std::size_t>(kernel.step)].number;
  const std::string group =
      fmt::format("{} {} {}", said.ranks.empty() ? said.group : fmt::format("{}", fmt::join(said.ranks, ",")),
                  step, sample_key(point));
  take(point, fmt::format("{} {}", group, calls.collectives[group]++), to_seconds(kernel.length), index);
}

void refuse_trace(const std::string& file, std::string code, std::string message, std::string hint,
                  Diagnostics& diagnostics) {
  diagnostics.error({.code = std::move(code),
                     .where = {file, 0, 0},
                     .message = std::move(message),
                     .hint = std::move(hint)});
}

// Refuses two traces of one rank, whose executions would count twice.
void check_ranks(const std::vector<MeasuredTrace>& traces, Diagnostics& diagnostics) {
  std::map<int, std::string> seen;
  for (const MeasuredTrace& measured : traces) {
    if (!measured.trace.rank) continue;
    const auto [first, is_new] = seen.emplace(*measured.trace.rank, measured.name);
    if (!is_new)
      refuse_trace(measured.name, "same-rank",
                   fmt::format("is of rank {}, and so is {}", *measured.trace.rank, first->second),
                   "give each rank once (distributedInfo.rank)", diagnostics);
  }
}

void check_alike(const std::vector<MeasuredTrace>& traces, Diagnostics& diagnostics) {
  const KinetoTrace& first = traces.front().trace;
  for (const MeasuredTrace& measured : traces) {
    const KinetoTrace& trace = measured.trace;
    if (trace.device.empty())
      refuse_trace(measured.name, "no-device", "does not name the device (deviceProperties)",
                   "--device says which GPU it was: --device \"NVIDIA A100-SXM4-80GB\"", diagnostics);
    else if (trace.device != first.device || trace.nccl_version != first.nccl_version)
      refuse_trace(measured.name, "mixed-setups",
                   fmt::format("is of {} with NCCL '{}', {} of {} with NCCL '{}'", trace.device,
                               trace.nccl_version, traces.front().name, first.device, first.nccl_version),
                   "import the files apart", diagnostics);
  }
}

}  // namespace

KinetoSamples kineto_samples(const std::vector<MeasuredTrace>& traces, int gpus_per_node,
                             Diagnostics& diagnostics) {
  if (traces.empty()) return {};
  check_alike(traces, diagnostics);
  check_ranks(traces, diagnostics);
  if (diagnostics.has_errors()) return {};
  const KinetoTrace& first = traces.front().trace;
  SampleCollector collector(gpus_per_node > 0 ? gpus_per_node : first.visible_devices);
  for (std::size_t i = 0; i < traces.size(); ++i) collector.add(i, traces[i]);
  SampleSetup setup;
  setup.device = first.device;
  setup.nccl = first.nccl_version;
  setup.clock_policy = fmt::format("unknown: {}", kSource);
  KinetoSamples out = collector.result(setup, first.date);
  const auto shapeless = out.unused.find("products without shapes");
  if (shapeless != out.unused.end())
    diagnostics.warning({.code = "no-shapes",
                         .where = {traces.front().name, 0, 0},
                         .message = fmt::format("{} kernels are of products whose shapes are not recorded",
                                                shapeless->second),
                         .hint = "profile with record_shapes=True"});
  if (out.samples.empty())
    refuse_trace(traces.front().name, "nothing-to-import",
                 "the steps hold no operator with its shapes and no collective with its size",
                 "profile with record_shapes=True, and with a version of PyTorch from 2.3 on for collectives",
                 diagnostics);
  return out;
}

}  // namespace stagecraft
