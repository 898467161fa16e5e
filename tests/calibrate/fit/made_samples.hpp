// Samples of a made device of 108 SMs, an A100 by its name.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/profile/hardware_profile.hpp"
#include "calibrate/profile/tile_model.hpp"
#include "calibrate/samples/sample.hpp"

namespace stagecraft {

inline Sample made_sample(std::string family, std::string op) {
  Sample sample;
  sample.family = std::move(family);
  sample.op = std::move(op);
  sample.repeats = 40;
  sample.spread = 0.004;
  sample.setup.device = "NVIDIA A100-SXM4-80GB";
  sample.setup.driver = "550.54";
  sample.date = "2026-11-20";
  return sample;
}

// 2 us of launch, then 80 % of peak through the tile model of the base.
inline std::vector<Sample> gemm_samples(const HardwareProfile& base) {
  std::vector<Sample> samples;
  for (const char* layout : {"TN", "NN", "NT"})
    for (const std::int64_t m : {512, 2048, 8192})
      for (const std::int64_t n : {1024, 5120})
        for (const std::int64_t k : {1024, 4096}) {
          Sample sample = made_sample("gemm", "gemm");
          sample.shape = {{"m", m}, {"n", n}, {"k", k}, {"batch", 1}};
          sample.tags = {{"layout", layout}, {"dtype", "bf16"}, {"load", "burst"}, {"cache", "cold"}};
          const double q = tile_quantisation(base.gemm, base.device.sms, {.m = m, .n = n, .k = k});
          sample.median_s = 2e-6 + 2.0 * static_cast<double>(m * n * k) / (312e12 * 0.8 * q);
          sample.min_s = sample.median_s;
          samples.push_back(sample);
        }
  return samples;
}

// 15 us + S * 7/4 / 200 GB/s over 8 ranks.
inline std::vector<Sample> all_reduce_samples() {
  std::vector<Sample> samples;
  for (std::int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 16) {
    Sample sample = made_sample("nccl", "all_reduce");
    sample.shape = {{"bytes", bytes}, {"ranks", 8}};
    sample.median_s = 15e-6 + static_cast<double>(bytes) * 1.75 / 200e9;
    sample.min_s = sample.median_s;
    samples.push_back(sample);
  }
  return samples;
}

// Their file.
inline std::string lines(const std::vector<Sample>& samples) {
  std::string text;
  for (const Sample& sample : samples) text += to_json_line(sample) + "\n";
  return text;
}

}  // namespace stagecraft
