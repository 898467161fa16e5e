// The family of memory-bound kernels: for each operator, operands, the launch, and the check of sampled rows.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/bench/kernels_point.hpp"
#include "calibrate/bench/kernels_shapes.hpp"

namespace stagecraft {
namespace {

const KernelRunner* runner_of(std::string_view op) {
  for (const std::span<const KernelRunner> runners :
       {row_runners(), loss_and_adam_runners(), move_runners()}) {
    const auto found = std::ranges::find(runners, op, &KernelRunner::op);
    if (found != runners.end()) return &*found;
  }
  return nullptr;
}

WorkItem item_of(const Sample& sample, double value, const Device& device) {
  const double bandwidth = device.copy_bytes_per_s > 0 ? device.copy_bytes_per_s : 1e12;
  WorkItem item{.prototype = sample, .value = value};
  item.estimated_seconds =
      0.15 + 60 * sample.bytes / bandwidth;  // set-up, the check, and forty or so repeats
  item.run = [sample](Harness& harness) {
    const KernelRunner* runner = runner_of(sample.op);
    if (runner == nullptr) throw Unmeasurable("no kernel for " + sample.op);
    KernelPoint point{.sample = sample, .op = *find_kernel_op(sample.op), .bench = Bench(harness)};
    return runner->run(point);
  };
  return item;
}

}  // namespace

// Value: fused forms of the first shapes of a kind first; memory-bound kernels are a tenth to a third of a
// layer's time (op-inventory.md against the GEMMs), so none is worth more than 30.
std::vector<WorkItem> kernel_items(const Device& device) {
  std::vector<WorkItem> items;
  std::map<std::pair<std::string, std::string>, int> rank;
  for (const Sample& sample : kernel_points()) {
    const std::string& variant = sample.tags.at("variant");
    const int place = rank[{sample.op, variant}]++;
    items.push_back(item_of(sample, (variant == "fused" ? 30.0 : 12.0) / (1 + place), device));
  }
  return items;
}

std::optional<WorkItem> kernel_item_for(const Sample& wanted, const Device& device) {
  Sample sample = wanted;
  if (sample.family != "kernel" || !complete_kernel_point(sample).empty()) return std::nullopt;
  return item_of(sample, 100, device);
}

}  // namespace stagecraft
