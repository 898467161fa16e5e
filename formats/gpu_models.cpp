#include "formats/gpu_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

using literals::operator""_GBps;

constexpr std::array kModels = {
    GpuModel{.device = "P100-SXM2-16GB", .pci = "0x15f9", .sm = 60, .profile = {}},
    GpuModel{.device = "V100-SXM2-16GB", .pci = "0x1db1", .sm = 70, .profile = {}},
    GpuModel{.device = "V100-SXM2-32GB", .pci = "0x1db5", .sm = 70, .profile = {}},
    GpuModel{.device = "V100-SXM3-32GB", .pci = "0x1db8", .sm = 70, .profile = {}},
    GpuModel{.device = "A100-SXM4-40GB", .pci = "0x20b0", .sm = 80, .profile = "a100-sxm4-40gb"},
    GpuModel{.device = "A100-SXM4-80GB", .pci = "0x20b2", .sm = 80, .profile = "a100-sxm4-80gb"},
    GpuModel{
        .device = "A100-PCIe-80GB", .product = "A100-80GB-PCIe", .pci = "0x20b5", .sm = 80, .profile = {}},
    GpuModel{.device = "A100-PCIe-40GB", .pci = "0x20f1", .sm = 80, .profile = {}},
    GpuModel{.device = "A800-SXM4-80GB", .pci = "0x20f3", .sm = 80, .profile = "a100-sxm4-80gb"},
    GpuModel{.device = "H800", .pci = "0x2324", .sm = 90, .profile = "h100-sxm5-80gb"},
    GpuModel{.device = "H100-SXM5-80GB",
             .product = "H100-80GB-HBM3",
             .pci = "0x2330",
             .sm = 90,
             .profile = "h100-sxm5-80gb"},
    GpuModel{
        .device = "H100-SXM5-80GB-HBM2e", .product = "H100-80GB-HBM2e", .pci = {}, .sm = 90, .profile = {}},
    GpuModel{.device = "H100-SXM5-96GB-HBM2e",
             .product = "H100-96GB-HBM2e",
             .pci = {},
             .sm = 90,
             .profile = "h100-hbm2e-96gb-500w"},
    GpuModel{.device = "H100-PCIe-80GB", .product = "H100-PCIe", .pci = "0x2331", .sm = 90, .profile = {}},
    GpuModel{.device = "H200-SXM-141GB",
             .product = "H200",
             .pci = "0x2335",
             .sm = 90,
             .profile = "h200-sxm-141gb"},
    GpuModel{.device = "B200-SXM-180GB",
             .product = "B200",
             .pci = "0x2901",
             .sm = 100,
             .profile = "b200-sxm-180gb"},
    GpuModel{.device = "GB200-186GB",
             .product = "GB200",
             .pci = {},
             .sm = 100,
             .profile = "gb200-186gb",
             .host_link = 225_GBps},
    GpuModel{
        .device = "B300-SXM-288GB", .product = "B300", .pci = {}, .sm = 103, .profile = "b300-sxm-288gb"},
    GpuModel{.device = "GB300-288GB",
             .product = "GB300",
             .pci = {},
             .sm = 103,
             .profile = "gb300-288gb",
             .host_link = 225_GBps},
};

// "NVIDIA H100 80GB HBM3": h100-80gb-hbm3.
std::string without_maker(std::string_view device) {
  std::string name = lower_case(device);
  std::ranges::replace(name, ' ', '-');
  for (const std::string_view maker : {"nvidia-", "tesla-"})
    if (name.starts_with(maker)) name.erase(0, maker.size());
  return name;
}

}  // namespace

const GpuModel* gpu_model_by_pci(std::string_view device_id) {
  const std::string wanted = lower_case(device_id);
  if (wanted.empty()) return nullptr;
  const auto* const found = std::ranges::find(kModels, wanted, &GpuModel::pci);
  return found == kModels.end() ? nullptr : found;
}

const GpuModel* gpu_model_by_name(std::string_view device) {
  const std::string wanted = without_maker(device);
  const auto* const found = std::ranges::find_if(kModels, [&](const GpuModel& m) {
    return lower_case(m.device) == wanted || (!m.product.empty() && lower_case(m.product) == wanted);
  });
  return found == kModels.end() ? nullptr : found;
}

namespace {

// "NVIDIA H100 80GB HBM3": h100, 80gb, hbm3, and sxm5 of the model's other name.
std::vector<std::string> words_in(std::string_view device) {
  std::string name = without_maker(device);
  if (const GpuModel* model = gpu_model_by_name(device))
    name = lower_case(fmt::format("{}-{}", model->device, model->product));
  std::vector<std::string> words;
  for (const std::string_view word : split(name, '-'))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

}  // namespace

bool is_same_gpu(std::string_view a, std::string_view b) {
  const GpuModel* first = gpu_model_by_name(a);
  const GpuModel* second = gpu_model_by_name(b);
  if (first != nullptr && second != nullptr)
    return first == second || (!first->profile.empty() && first->profile == second->profile);
  std::vector<std::string> shorter = words_in(a), longer = words_in(b);
  if (shorter.size() > longer.size()) std::swap(shorter, longer);
  return std::ranges::all_of(
      shorter, [&](const std::string& word) { return std::ranges::find(longer, word) != longer.end(); });
}

std::string near_gpu_models(std::string_view device) {
  std::vector<std::string> names;
  for (const GpuModel& model : kModels) names.emplace_back(model.device);
  return suggest(without_maker(device), names);
}

NvlinkRates nvlink_rates(int sm) {
  if (sm >= 100) return {.planned = 40.1_GBps, .line = 50_GBps, .links = 18};
  if (sm >= 90) return {.planned = 20.6_GBps, .line = 25_GBps, .links = 18};
  if (sm == 86) return {.planned = 12.0_GBps, .line = {}};
  if (sm >= 80) return {.planned = 20.0_GBps, .line = 25_GBps, .links = 12};
  if (sm >= 70) return {.planned = 20.0_GBps, .line = 25_GBps, .links = 6};
  if (sm >= 60) return {.planned = 18.0_GBps, .line = 20_GBps, .links = 4};
  return {};
}

Bandwidth pcie_line_rate(int sm) {
  return sm >= 90 ? 63_GBps : sm >= 80 ? 31.5_GBps : 15.75_GBps;
}

std::string nvlink_example(int sm) {
  const NvlinkRates rates = nvlink_rates(sm);
  return rates.links > 0 ? fmt::format("{:g} GB/s", rates.line.count() / 1e9 * rates.links) : "…";
}

}  // namespace stagecraft
