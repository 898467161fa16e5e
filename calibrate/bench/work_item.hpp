// One thing to measure: what it is, what it is worth, what it will cost, and how to run it.
//
// A family of measurements is a function that lists its items for a device. Listing touches no GPU: `--list`
// prints the plan on any machine. Only `run` needs one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/bench/device.hpp"
#include "calibrate/samples/sample.hpp"

namespace stagecraft {

class Harness;

// What one run found. Seconds are of one execution.
struct Measured {
  double median_s = 0;
  double min_s = 0;
  double spread = 0;  // (p84 - p16) / (2 * median)
  int repeats = 0;    // 0: nothing was timed (--check)
  double max_error = -1;
  int sm_mhz = 0;
  double power_w = 0;
  std::optional<double> bytes = {};  // where only the run can know them; else the prototype's count
  std::map<std::string, std::string> observed = {};  // become tags "seen_<name>": noted, no part of the key
  std::vector<Sample> more = {};  // other points of the same run; the runner adds setup and date
};

struct WorkItem {
  Sample prototype = {};         // family, op, shape, tags, flops, bytes; the rest is filled from Measured
  double value = 1;              // share of a training step that hangs on it, 100 = most; orders the plan
  double estimated_seconds = 1;  // wall clock of the whole item: set-up, check and repeats
  std::function<Measured(Harness&)> run = {};
};

// The families. Each in the file of its name; a family whose library was absent at build time returns no
// items.
[[nodiscard]] std::vector<WorkItem> gemm_items(const Device& device);
[[nodiscard]] std::vector<WorkItem> sustained_items(const Device& device);
[[nodiscard]] std::vector<WorkItem> system_items(const Device& device);
[[nodiscard]] std::vector<WorkItem> interference_items(const Device& device);
[[nodiscard]] std::vector<WorkItem> kernel_items(const Device& device);
[[nodiscard]] std::vector<WorkItem> attention_items(const Device& device);
[[nodiscard]] std::vector<WorkItem> nccl_items(const Device& device);

// The items for points that somebody asked for (--shapes): family, op, shape and tags are given, missing tags
// take the family's defaults. Empty optional: this family does not measure such a point.
[[nodiscard]] std::optional<WorkItem> gemm_item_for(const Sample& wanted, const Device& device);
[[nodiscard]] std::optional<WorkItem> kernel_item_for(const Sample& wanted, const Device& device);
[[nodiscard]] std::optional<WorkItem> attention_item_for(const Sample& wanted, const Device& device);
[[nodiscard]] std::optional<WorkItem> nccl_item_for(const Sample& wanted, const Device& device);

}  // namespace stagecraft
