// Clocks and power, asked of the driver's management library, which is loaded at run time.
//
// Where the library is absent or a query is refused, the answer is empty and the suite goes on without it: a
// container often has no libnvidia-ml. The library needs no header of its own: the few functions used are
// declared here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stagecraft {

class Nvml {
 public:
  // Finds the GPU by its PCI bus id ("00000000:01:00.0"), since CUDA and the driver number devices
  // differently.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] bool present() const { return device_ != nullptr; }
  [[nodiscard]] std::optional<int> sm_mhz() const;
  [[nodiscard]] std::optional<double> power_w() const;
  [[nodiscard]] std::optional<int> power_limit_w() const;
  [[nodiscard]] std::optional<std::string> driver_version() const;
  // Bits of nvmlClocksEventReasons: why the clock is below what was asked for.
  [[nodiscard]] std::optional<std::uint64_t> clock_reasons() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace stagecraft
