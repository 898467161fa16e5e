// stagecraft-calibrate: measures a GPU host. See docs/calibration.md.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "calibrate/bench/cuda_raii.hpp"
#include "calibrate/bench/families.hpp"
#include "calibrate/bench/harness.hpp"
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
  return items;
}

// The same command line, with what is left of the budget; later options win over earlier ones.
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

int calibrate(const std::vector<std::string>& arguments) {
  const auto started = std::chrono::steady_clock::now();
  const CalibrateOptions options = parse_options(arguments);
  if (options.help) {
    std::fputs(usage().c_str(), stdout);
    return 0;
  }
  const std::string missing = what_is_missing(options.device);
  if (!missing.empty() && !options.list) {
    std::fprintf(stderr, "stagecraft-calibrate: %s\n", missing.c_str());
    return kBadInput;
  }
  const Device device = missing.empty() ? query_device(options.device) : typical_device();
  auto items = list_items(options.families, device);
  if (!options.shapes.empty()) items = wanted_items(options.shapes, std::move(items), device);
  if (options.list) {
    std::printf("# %s\n", device.name.c_str());
    print_plan(items, options);
    return 0;
  }
  return run_items(items, {.options = options, .started = started, .restart = [&] {
                             restart(options, started, arguments);
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
