#include "calibrate/bench/nvml.hpp"

#include <dlfcn.h>

#include <array>

namespace stagecraft {
namespace {

// source   nvml.h: NVML_SUCCESS 0, NVML_CLOCK_SM 1; power in milliwatts.
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;

template <class Function>
Function* symbol(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

template <class Value, class... Arguments>
std::optional<Value> ask(void* library, const char* name, void* device, Arguments... arguments) {
  auto* function = symbol<int(void*, Arguments..., Value*)>(library, name);
  Value value{};
  if (device == nullptr || function == nullptr || function(device, arguments..., &value) != kSuccess)
    return {};
  return value;
}

}  // namespace

Nvml::Nvml(const std::string& pci_bus_id) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* init = symbol<int()>(library_, "nvmlInit_v2");
  auto* find = symbol<int(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || find == nullptr || init() != kSuccess) return;
  if (find(pci_bus_id.c_str(), &device_) != kSuccess) device_ = nullptr;
}

// The library stays loaded and initialised until the process ends: unloading a driver library is asking for
// trouble.
Nvml::~Nvml() = default;

std::optional<int> Nvml::sm_mhz() const {
  const auto mhz = ask<unsigned, int>(library_, "nvmlDeviceGetClockInfo", device_, kClockSm);
  return mhz ? std::optional(static_cast<int>(*mhz)) : std::nullopt;
}

std::optional<double> Nvml::power_w() const {
  const auto milliwatts = ask<unsigned>(library_, "nvmlDeviceGetPowerUsage", device_);
  return milliwatts ? std::optional(*milliwatts * 1e-3) : std::nullopt;
}

std::optional<int> Nvml::power_limit_w() const {
  const auto milliwatts = ask<unsigned>(library_, "nvmlDeviceGetEnforcedPowerLimit", device_);
  return milliwatts ? std::optional(static_cast<int>(*milliwatts / 1000)) : std::nullopt;
}

std::optional<std::string> Nvml::driver_version() const {
  auto* function = symbol<int(char*, unsigned)>(library_, "nvmlSystemGetDriverVersion");
  std::array<char, 96> text{};
  if (device_ == nullptr || function == nullptr || function(text.data(), text.size() - 1) != kSuccess)
    return {};
  return std::string(text.data());
}

std::optional<std::uint64_t> Nvml::clock_reasons() const {
  // Renamed in driver 535; the old name is what older drivers know.
  auto reasons = ask<unsigned long long>(library_, "nvmlDeviceGetCurrentClocksEventReasons", device_);
  if (!reasons)
    reasons = ask<unsigned long long>(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", device_);
  return reasons ? std::optional(static_cast<std::uint64_t>(*reasons)) : std::nullopt;
}

}  // namespace stagecraft
