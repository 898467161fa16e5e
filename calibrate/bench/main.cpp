// stagecraft-calibrate: measures a GPU host. See docs/calibration.md.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "calibrate/bench/cuda_raii.hpp"
#include "calibrate/bench/families.hpp"
#include "calibrate/bench/harness.hpp"
#include "calibrate/bench/job.hpp"
#include "calibrate/bench/nccl.hpp"
#include "calibrate/bench/options.hpp"
#include "calibrate/bench/runner.hpp"
#include "calibrate/samples/sample_log.hpp"

namespace stagecraft {
namespace {

constexpr int kBadInput = 2;
constexpr int kMostRestarts = 8;

// Why nothing can be measured here; empty if something can.
std::string what_is_missing(int device) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0)
    return std::string("no CUDA device was found (") +
           cudaGetErrorString(code == cudaSuccess ? cudaErrorNoDevice : code) +
           ").\nIt needs an NVIDIA GPU of compute capability 8.0 or more and a driver that supports CUDA " +
           std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10) +
           ".\n  hint: --list prints the plan without one; published profiles need none";
  if (device >= count)
    return "--device " + std::to_string(device) + ": there are " + std::to_string(count) + " devices";
  if (const int capability = query_device(device).compute_capability; capability < 80)
    return "the device has compute capability " + std::to_string(capability / 10) + "." +
           std::to_string(capability % 10) + ", 8.0 or more is needed";
  return "";
}

std::vector<WorkItem> wanted_items(const std::string& path, std::vector<WorkItem> listed,
                                   const Device& device) {
  std::ifstream in(path);
  if (!in) throw UsageError(path + ": cannot be read");
  std::vector<WorkItem> items;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string where = path + ":" + std::to_string(++number) + ": ";
    auto wanted = parse_wanted(line);
    if (const auto* problem = std::get_if<std::string>(&wanted)) throw UsageError(where + *problem);
    auto item = item_for(std::get<WantedPoint>(wanted), listed, device);
    if (item)
      items.push_back(std::move(*item));
    else
      std::fprintf(stderr, "%sno family measures %s\n", where.c_str(),
                   sample_key(std::get<WantedPoint>(wanted).point).c_str());
  }
  if (in.bad()) throw UsageError(path + ": cannot be read");
  return items;
}

// Starts the program anew with the same command line and what is left of the budget; later options win over
// earlier ones.
void restart(const CalibrateOptions& options, std::chrono::steady_clock::time_point started,
             const std::vector<std::string>& arguments) {
  if (options.restarts >= kMostRestarts || options.out == "-") return;
  std::vector<std::string> all = {"stagecraft-calibrate"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  if (options.budget_seconds) {
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    const int left = static_cast<int>(*options.budget_seconds - spent);
    if (left <= 0) return;
    all.insert(all.end(), {"--budget", std::to_string(left) + "s"});
  }
  all.insert(all.end(), {"--restarts", std::to_string(options.restarts + 1)});
  std::vector<char*> raw;
  for (std::string& argument : all) raw.push_back(argument.data());
  raw.push_back(nullptr);
  (void)execv("/proc/self/exe", raw.data());
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Ranks of a job have the same items in the same order: a file that holds some of them would make rank 0 skip
// what the others wait in.
std::vector<WorkItem> job_items(const CalibrateOptions& options, const NcclJob& job, const Device& device) {
  if (job.rank == 0 && options.out != "-" && !SampleLog(options.out).keys().empty())
    throw UsageError("--out " + options.out + " holds samples: a job begins a file of its own");
  return nccl_job_items(device, job);
}

std::vector<WorkItem> items_of(const CalibrateOptions& options, const std::optional<NcclJob>& job,
                               const Device& device) {
  if (job) return job_items(options, *job, device);
  auto listed = list_items(options.families, device);
  return options.shapes.empty() ? listed : wanted_items(options.shapes, std::move(listed), device);
}

int calibrate(const std::vector<std::string>& arguments) {
  const auto started = std::chrono::steady_clock::now();
  const CalibrateOptions given = parse_options(arguments);
  if (given.help) {
    std::fputs(usage().c_str(), stdout);
    return 0;
  }
  const std::optional<NcclJob> job = job_of(given, variable);
  const CalibrateOptions options = job ? options_of_rank(given, *job) : given;
  const int which = options.device.value_or(0);
  const std::string missing = what_is_missing(which);
  if (!missing.empty() && !options.list) {
    std::fprintf(stderr, "stagecraft-calibrate: %s\n", missing.c_str());
    return kBadInput;
  }
  const Device device = missing.empty() ? query_device(which) : typical_device();
  const auto items = items_of(options, job, device);
  if (options.list) {
    std::printf("# %s\n", device.name.c_str());
    print_plan(items, options);
    return 0;
  }
  return run_items(items, {.options = options, .started = started, .restart = [&] {
                             if (!job) restart(options, started, arguments);
                           }});
}

}  // namespace
}  // namespace stagecraft

int main(int argc, char** argv) {
  try {
    return stagecraft::calibrate({argv + 1, argv + argc});
  } catch (const stagecraft::UsageError& error) {
    std::fprintf(stderr, "stagecraft-calibrate: %s\n", error.what());
    return stagecraft::kBadInput;
  } catch (const stagecraft::SampleLogError& error) {
    std::fprintf(stderr, "stagecraft-calibrate: %s\n", error.what());
    return stagecraft::kBadInput;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stagecraft-calibrate: %s\n", error.what());
    return 1;
  }
}
