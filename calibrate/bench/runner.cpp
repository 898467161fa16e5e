#include "calibrate/bench/runner.hpp"

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "calibrate/bench/harness.hpp"
#include "calibrate/bench/watchdog.hpp"
#include "calibrate/samples/plan.hpp"
#include "calibrate/samples/sample_log.hpp"

namespace stagecraft {
namespace {

// 13000 -> "13.0", as CUDA counts (thousands and tens).
std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Asked of the library if it is loaded, so that this file needs neither its header nor its presence.
std::string cudnn_version() {
  auto* ask = reinterpret_cast<std::size_t (*)()>(dlsym(RTLD_DEFAULT, "cudnnGetVersion"));
  if (ask == nullptr) return "";
  const std::size_t v = ask();  // 9.x.y: 90000 + 100 x + y
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}
std::string nccl_version() {
  auto* ask = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int v = 0;
  if (ask == nullptr || ask(&v) != 0) return "";
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}

SampleSetup read_setup(const Harness& harness) {
  int runtime = 0, driver = 0;
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  const auto cublas = static_cast<int>(cublasLtGetVersion());  // 130002: 13.0.2
  constexpr std::uint64_t kUserClocks = 0x2;  // nvmlClocksEventReasonApplicationsClocksSetting
  const bool locked = (harness.nvml().clock_reasons().value_or(0) & kUserClocks) != 0;
  return {.device = harness.device().name,
          .driver = harness.nvml().driver_version().value_or("for CUDA " + cuda_version(driver)),
          .cuda = cuda_version(runtime),
          .cublas = std::to_string(cublas / 10000) + "." + std::to_string(cublas / 100 % 100) + "." +
                    std::to_string(cublas % 100),
          .cudnn = cudnn_version(),
          .nccl = nccl_version(),
          .clock_policy = locked ? "set by the user" : "default",
          .power_limit_w = harness.nvml().power_limit_w().value_or(0)};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  (void)gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  (void)std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Sample sample_of(const Sample& prototype, const Measured& measured) {
  Sample sample = prototype;
  sample.median_s = measured.median_s;
  sample.min_s = measured.min_s;
  sample.spread = measured.spread;
  sample.repeats = measured.repeats;
  sample.bytes = measured.bytes.value_or(prototype.bytes);
  sample.max_error = measured.max_error;
  sample.sm_mhz = measured.sm_mhz;
  sample.power_w = measured.power_w;
  for (const auto& [name, value] : measured.observed) sample.tags["seen_" + name] = value;
  return sample;
}

std::vector<Candidate> candidates_of(const std::vector<WorkItem>& items) {
  std::vector<Candidate> candidates;
  for (const WorkItem& item : items)
    candidates.push_back({sample_key(item.prototype), item.value, item.estimated_seconds});
  return candidates;
}

std::string minutes(double seconds) {
  std::array<char, 32> text{};
  const int whole = static_cast<int>(seconds);
  (void)std::snprintf(text.data(), text.size(), "%d:%02d", whole / 60, whole % 60);
  return text.data();
}

class Runner {
 public:
  Runner(const std::vector<WorkItem>& items, const RunContext& context)
      : items_(items),
        context_(context),
        log_(context.options.out),
        harness_({.device_index = context.options.device.value_or(0),
                  .check_only = context.options.check,
                  .effort = context.options.quick ? 0.3 : 1.0}),
        setup_(read_setup(harness_)),
        watchdog_([this] { lose("took far longer than it should"); }) {
    const std::string difference = log_.setup() ? setup_difference(*log_.setup(), setup_) : "";
    if (!difference.empty())
      throw SampleLogError(context.options.out + ": holds samples of another setup (" + difference +
                           ")\n  hint: nothing was changed; choose another file with --out");
  }

  int run() {
    const auto candidates = candidates_of(items_);
    const auto plan = plan_work(candidates, {.measured = log_.keys(), .failed = log_.failed()}, {});
    std::fprintf(stderr, "%s, driver %s, CUDA %s, reference clock %d MHz%s; %zu points\n",
                 setup_.device.c_str(), setup_.driver.c_str(), setup_.cuda.c_str(), harness_.reference_mhz(),
                 harness_.nvml().present() ? "" : " (no NVML: power is not read)", plan.size());
    for (const PlannedWork& work : plan) {
      const WorkItem& item = items_[work.candidate];
      if (work.fate == Fate::kMeasured)
        ++before_;
      else if (work.fate == Fate::kFailedBefore)
        ++failed_before_;
      else if (context_.options.budget_seconds &&
               elapsed() + item.estimated_seconds > *context_.options.budget_seconds)
        ++over_budget_;
      else
        one(item, candidates[work.candidate].key);
    }
    summary();
    return wrong_ + broken_ > 0 ? 1 : 0;
  }

 private:
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - context_.started).count();
  }

  void one(const WorkItem& item, const std::string& key) {
    current_ = key;
    watchdog_.expect_within(30 + 10 * item.estimated_seconds);
    try {
      const Measured measured = item.run(harness_);
      harness_.synchronize();
      watchdog_.rest();
      keep(item, key, measured);
    } catch (const Unmeasurable& reason) {
      notice("skipped", key, reason.what(), skipped_);
    } catch (const WrongResult& reason) {
      notice("WRONG", key, reason.what(), wrong_);
    } catch (const SampleLogError&) {
      throw;  // what cannot be written need not be measured
    } catch (const CudaError& error) {
      if (!error.out_of_memory() && cudaDeviceSynchronize() != cudaSuccess) lose(error.what());
      notice("skipped", key, error.what(), error.out_of_memory() ? skipped_ : broken_);
    } catch (const std::exception& error) {
      notice("skipped", key, error.what(), broken_);
    }
    watchdog_.rest();
    (void)cudaGetLastError();
  }

  void keep(const WorkItem& item, const std::string& key, const Measured& measured) {
    ++measured_;
    if (measured.repeats == 0) {  // --check
      if (measured.max_error >= 0)
        std::fprintf(stderr, "right    %s  error %.2g of its bound\n", key.c_str(), measured.max_error);
      return;
    }
    std::vector<Sample> samples = measured.more;
    samples.push_back(sample_of(item.prototype, measured));  // last: where it stands, all have been written
    for (Sample& sample : samples) {
      sample.setup = setup_;
      sample.date = utc_now();
      log_.append(sample);
      std::fprintf(stderr, "%s  %-9.4g us  +-%.1f%%  %s", minutes(elapsed()).c_str(), sample.median_s * 1e6,
                   100 * sample.spread, sample_key(sample).c_str());
      if (sample.flops > 0) std::fprintf(stderr, "  %.0f TFLOP/s", sample.flops / sample.median_s * 1e-12);
      if (sample.bytes > 0) std::fprintf(stderr, "  %.0f GB/s", sample.bytes / sample.median_s * 1e-9);
      std::fprintf(stderr, "  %d MHz\n", sample.sm_mhz);
    }
  }

  static void notice(const char* what, const std::string& key, const char* why, int& count) {
    ++count;
    std::fprintf(stderr, "%-8s %s: %s\n", what, key.c_str(), why);
  }

  // The device is lost to this process. Also called by the watchdog, in its thread.
  void lose(const char* why) {
    std::fprintf(stderr, "LOST     %s: %s\n", current_.c_str(), why);
    log_.append_failed(current_);
    context_.restart();
    std::fprintf(stderr, "The device is lost to this process; run the same command again to go on.\n");
    std::_Exit(1);
  }

  void summary() const {
    std::fprintf(stderr,
                 "%s: %d measured, %d there before, %d skipped, %d beyond the budget, %d lost before, %d "
                 "broken, %d wrong\n",
                 minutes(elapsed()).c_str(), measured_, before_, skipped_, over_budget_, failed_before_,
                 broken_, wrong_);
  }

  const std::vector<WorkItem>& items_;
  const RunContext& context_;
  SampleLog log_;
  Harness harness_;
  SampleSetup setup_;
  std::string current_;
  int measured_ = 0, before_ = 0, skipped_ = 0, over_budget_ = 0, failed_before_ = 0, broken_ = 0, wrong_ = 0;
  Watchdog watchdog_;  // last: its thread uses the others
};

}  // namespace

int run_items(const std::vector<WorkItem>& items, const RunContext& context) {
  Runner runner(items, context);
  return runner.run();
}

void print_plan(const std::vector<WorkItem>& items, const CalibrateOptions& options) {
  const SampleLog log(options.out);
  const auto plan = plan_work(candidates_of(items), {.measured = log.keys(), .failed = log.failed()},
                              options.budget_seconds);
  const char* const fates[] = {"", "measured", "failed before", "beyond the budget"};
  double total = 0, planned = 0;
  std::printf("%6s %8s %8s  %s\n", "value", "seconds", "until", "point");
  for (const PlannedWork& work : plan) {
    const WorkItem& item = items[work.candidate];
    const bool runs = work.fate == Fate::kPlanned;
    total += item.estimated_seconds;
    if (runs) planned += item.estimated_seconds;
    std::printf("%6.1f %8.2f %8s  %s%s%s\n", item.value, item.estimated_seconds,
                runs ? minutes(planned).c_str() : "-", sample_key(item.prototype).c_str(), runs ? "" : "  # ",
                fates[static_cast<int>(work.fate)]);
  }
  std::printf("# %zu points, about %s in all, %s planned\n", plan.size(), minutes(total).c_str(),
              minutes(planned).c_str());
}

}  // namespace stagecraft
