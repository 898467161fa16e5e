// What the list of measurements needs to know of a GPU; plain numbers, so that a plan can be printed without
// one.
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft {

struct Device {
  std::string name;
  int compute_capability = 0;  // 90 = 9.0
  int sms = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  double copy_bytes_per_s = 0;    // for estimates of running time only, never for a result
  double dense_flops_per_s = 0;   // bf16; the same
  std::int64_t shared_bytes = 0;  // largest dynamic shared memory of one block
};

// Stands in where no GPU is present (--list): the size class of the accelerators that the suite is made for.
// The numbers decide the printed estimates and which shapes count as wave edges; nothing measured uses them.
//
//   source   132 SMs, 50 MB L2, 80 GB, 3.35 TB/s and 989 TFLOP/s: NVIDIA H100 SXM data sheet; 227 KiB: CUDA
//            programming guide, compute capability 9.0. Rates are taken at 80 % of the data sheet.
[[nodiscard]] inline Device typical_device() {
  return {.name = "no GPU (H100 SXM assumed)",
          .compute_capability = 90,
          .sms = 132,
          .l2_bytes = std::int64_t{50} * 1024 * 1024,
          .memory_bytes = std::int64_t{80} * 1000 * 1000 * 1000,
          .copy_bytes_per_s = 0.8 * 3.35e12,
          .dense_flops_per_s = 0.8 * 989e12,
          .shared_bytes = 227 * 1024};
}

}  // namespace stagecraft
