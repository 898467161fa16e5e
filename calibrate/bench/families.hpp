// The families of measurements, in one table that feeds the plan, --families and --help.
#pragma once

#include <optional>
#include <vector>

#include "calibrate/bench/work_item.hpp"

namespace stagecraft {

struct Family {
  const char* name;
  const char* measures;
  std::vector<WorkItem> (*items)(const Device&);
  std::optional<WorkItem> (*item_for)(const Sample&, const Device&);  // null: only what it lists
};

constexpr Family kFamilies[] = {
    {"gemm", "matrix products by cuBLASLt, in bursts", gemm_items, gemm_item_for},
    {"sustained", "the matrix products of a layer at the power limit, 13 s each", sustained_items, nullptr},
    {"kernel", "fused and unfused memory-bound kernels, forward and backward", kernel_items, kernel_item_for},
    {"attention", "cuDNN's fused attention, forward and backward", attention_items, attention_item_for},
    {"system", "memory and host copies, launches, graphs, allocations", system_items, nullptr},
    {"interference", "matrix products beside a kernel that holds multiprocessors", interference_items,
     nullptr},
    {"nccl", "collectives over the GPUs of this host", nccl_items, nccl_item_for},
};

// The items of the named families; all where no name is given.
[[nodiscard]] std::vector<WorkItem> list_items(const std::vector<std::string>& families,
                                               const Device& device);

// The item for a point that somebody asked for: a listed one of the same family, operator and shape that has
// all its tags, or one that the family makes for it. Empty: no family measures it. Its value is the one asked
// for.
[[nodiscard]] std::optional<WorkItem> item_for(const WantedPoint& wanted, const std::vector<WorkItem>& listed,
                                               const Device& device);

}  // namespace stagecraft
