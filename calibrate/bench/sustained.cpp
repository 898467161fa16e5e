// What a device sustains: the matrix products of one layer in a loop at its power limit, alone and beside
// what else a layer does.
//
// A short burst runs at the boost clock; a training run does not. Each operator is timed inside the loop,
// between events of its own, so that the ratio to its burst time is known one by one. The first seconds are
// left out: power and temperature are still rising.
#include "calibrate/bench/sustained.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>

#include "calibrate/bench/gemm.hpp"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSettle = 3;    // seconds left out
constexpr double kMeasure = 10;  // seconds that count
constexpr std::int64_t kTokens = 8192;

// What takes turns. Copies stand for the memory-bound kernels of a layer.
struct Mix {
  std::string name, dtype;
  bool attention = false;
  double copies = 0;  // share of the time
  double value = 0;
};

// The layer of the 8-billion-parameter model: 4096 wide, 14336 feed-forward, 32 heads on 8 key/value heads of
// 128.
std::vector<GemmPoint> layer_points(const std::string& dtype) {
  struct Weight {
    std::int64_t out, in;
  };
  const bool fp8 = dtype == "e4m3";
  std::vector<GemmPoint> points;
  for (const Weight w : {Weight{6144, 4096}, Weight{4096, 4096}, Weight{28672, 4096}, Weight{4096, 14336}}) {
    const std::string gradient = fp8 ? "e5m2" : dtype;
    points.push_back({.m = kTokens, .n = w.out, .k = w.in, .dtype = dtype});
    points.push_back({.m = kTokens,
                      .n = w.in,
                      .k = w.out,
                      .dtype = gradient,
                      .layout = fp8 ? GemmLayout::kTN : GemmLayout::kNN});
    points.push_back({.m = w.out,
                      .n = w.in,
                      .k = kTokens,
                      .dtype = gradient,
                      .layout = fp8 ? GemmLayout::kTN : GemmLayout::kNT,
                      .accumulate = true});
  }
  return points;
}

// A copy between two buffers, long enough to take its share of the time.
struct Copy {
  DeviceMemory from, to;
  void enqueue(cudaStream_t stream) const {
    if (from.bytes() > 0)
      CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream));
  }
};

// Events before each operator and after the last, for two passes: one is read while the other runs.
class Loop {
 public:
  Loop(Harness& harness, const std::vector<SustainedRun>& runs, const Copy& copy)
      : harness_(harness), runs_(runs), copy_(copy), times_(runs.size() + 1) {
    for (auto& pass : marks_) pass = std::vector<Event>(runs.size() + 2);
  }

  void run(double settle, double measure) {
    const auto start = Clock::now();
    const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    enqueue(0);
    for (std::size_t pass = 1; now() < settle + measure; ++pass) {
      enqueue(pass % 2);
      finish((pass - 1) % 2, now() > settle);
    }
    harness_.synchronize();
  }
  // The times of each operator, and last those of the whole pass.
  [[nodiscard]] const std::vector<std::vector<double>>& times() const { return times_; }
  [[nodiscard]] const std::vector<double>& clocks() const { return clocks_; }
  [[nodiscard]] const std::vector<double>& powers() const { return powers_; }

 private:
  void enqueue(std::size_t parity) {
    const auto& marks = marks_[parity];
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      marks[i].record(harness_.stream());
      runs_[i].enqueue(harness_.stream());
    }
    marks[runs_.size()].record(harness_.stream());
    copy_.enqueue(harness_.stream());
    marks[runs_.size() + 1].record(harness_.stream());
  }
  void finish(std::size_t parity, bool counts) {
    const auto& marks = marks_[parity];
    CUDA_CHECK(cudaEventSynchronize(marks.back().get()));
    if (!counts) return;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      times_[i].push_back(seconds_between(marks[i], marks[i + 1]));
    times_.back().push_back(seconds_between(marks.front(), marks.back()));
    if (const auto mhz = harness_.nvml().sm_mhz()) clocks_.push_back(*mhz);
    if (const auto watts = harness_.nvml().power_w()) powers_.push_back(*watts);
  }

  Harness& harness_;
  const std::vector<SustainedRun>& runs_;
  const Copy& copy_;
  std::array<std::vector<Event>, 2> marks_;
  std::vector<std::vector<double>> times_;
  std::vector<double> clocks_, powers_;
};

void summarise(const std::vector<double>& seconds, Sample& sample) {
  sample.median_s = median(seconds);
  sample.min_s = *std::ranges::min_element(seconds);
  sample.spread = relative_spread(seconds);
  sample.repeats = static_cast<int>(seconds.size());
}

// Copies as long as this share of a pass needs, by the rates of a short trial.
Copy copies_for(Harness& harness, const std::vector<SustainedRun>& runs, double share) {
  const Copy none;
  Loop trial(harness, runs, none);
  trial.run(0, 0.2);
  if (trial.times().back().empty()) throw Unmeasurable("a single pass takes longer than the trial");
  const double pass = median(trial.times().back());
  const double wanted = pass * share / (1 - share) * harness.device().copy_bytes_per_s / 2;
  const auto bytes = static_cast<std::int64_t>(std::min(wanted, 8e9)) / 256 * 256;
  Copy copy{harness.allocate(bytes), harness.allocate(bytes)};
  harness.fill_normal(copy.from.data(), bytes / 2, Dtype::kBf16, 21);
  return copy;
}

std::vector<SustainedRun> operators_of(Harness& harness, const Mix& mix) {
  std::vector<SustainedRun> runs;
  for (const GemmPoint& point : layer_points(mix.dtype)) {
    const auto run = std::make_shared<GemmRun>(harness, point);
    const double error = run->check(harness);
    Sample prototype = gemm_prototype(point);
    prototype.tags["seen_algo"] = run->algorithm();
    runs.push_back({.prototype = std::move(prototype),
                    .enqueue = [run](cudaStream_t stream) { run->enqueue(stream); },
                    .max_error = error});
  }
  if (!mix.attention) return runs;
  std::vector<SustainedRun> attention = sustained_attention(harness, kTokens);
  if (attention.empty()) throw Unmeasurable("there is no cuDNN for its attention");
  std::ranges::move(attention, std::back_inserter(runs));
  return runs;
}

Measured run_mix(Harness& harness, const Mix& mix) {
  const std::vector<SustainedRun> runs = operators_of(harness, mix);
  Measured measured;
  for (const SustainedRun& run : runs) measured.max_error = std::max(measured.max_error, run.max_error);
  if (harness.check_only()) return measured;
  const Copy copy = mix.copies > 0 ? copies_for(harness, runs, mix.copies) : Copy{};
  Loop loop(harness, runs, copy);
  loop.run(kSettle, kMeasure);
  if (loop.times().back().size() < 20) throw Unmeasurable("fewer than twenty passes in ten seconds");

  // Without the driver's library the clock right after the loop stands for the clock within it.
  harness.probe_clock(harness.stream());
  const int mhz = loop.clocks().empty() ? harness.probed_mhz() : static_cast<int>(median(loop.clocks()));
  const double watts = loop.powers().empty() ? 0 : median(loop.powers());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Sample sample = runs[i].prototype;
    sample.tags["load"] = "sustained";
    sample.tags["mix"] = mix.name;
    summarise(loop.times()[i], sample);
    sample.max_error = runs[i].max_error;
    sample.sm_mhz = mhz;
    sample.power_w = watts;
    measured.more.push_back(std::move(sample));
  }
  Sample pass;
  summarise(loop.times().back(), pass);
  measured.median_s = pass.median_s;
  measured.min_s = pass.min_s;
  measured.spread = pass.spread;
  measured.repeats = pass.repeats;
  measured.sm_mhz = mhz;
  measured.power_w = watts;
  return measured;
}

}  // namespace

std::vector<WorkItem> sustained_items(const Device&) {
  std::vector<WorkItem> items;
  for (const Mix& mix :
       {Mix{.name = "gemm", .dtype = "bf16", .value = 100},
        Mix{.name = "layer", .dtype = "bf16", .attention = true, .copies = 0.15, .value = 99},
        Mix{.name = "gemm_and_copy", .dtype = "bf16", .copies = 0.3, .value = 66},
        Mix{.name = "gemm", .dtype = "e4m3", .value = 67}}) {
    WorkItem item;
    item.prototype.family = "gemm";
    item.prototype.op = "gemm_mix";
    item.prototype.shape = {{"tokens", kTokens}, {"hidden", 4096}, {"ffn", 14336}};
    item.prototype.tags = {{"dtype", mix.dtype}, {"load", "sustained"}, {"mix", mix.name}};
    for (const GemmPoint& point : layer_points(mix.dtype)) {
      item.prototype.flops += gemm_flops(point);
      item.prototype.bytes += gemm_bytes(point);
    }
    item.value = mix.value;
    item.estimated_seconds = kSettle + kMeasure + 1;
    item.run = [mix](Harness& harness) { return run_mix(harness, mix); };
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace stagecraft
