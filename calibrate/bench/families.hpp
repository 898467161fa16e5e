// The families of measurements with the functions that list their items: one table feeds the plan.
#pragma once

#include <iterator>
#include <optional>
#include <vector>

#include "calibrate/bench/family_names.hpp"
#include "calibrate/bench/work_item.hpp"

namespace stagecraft {

struct Family {
  FamilyName is;
  std::vector<WorkItem> (*items)(const Device&);
  std::optional<WorkItem> (*item_for)(const Sample&, const Device&);  // null: only what it lists
};

constexpr Family kFamilies[] = {
    {kFamilyNames[0], gemm_items, gemm_item_for},     {kFamilyNames[1], sustained_items, nullptr},
    {kFamilyNames[2], kernel_items, kernel_item_for}, {kFamilyNames[3], attention_items, attention_item_for},
    {kFamilyNames[4], system_items, nullptr},         {kFamilyNames[5], interference_items, nullptr},
    {kFamilyNames[6], nccl_items, nccl_item_for},
};
static_assert(std::size(kFamilies) == std::size(kFamilyNames), "every name has its items");

// The items of the named families; all where no name is given.
[[nodiscard]] std::vector<WorkItem> list_items(const std::vector<std::string>& families,
                                               const Device& device);

// The item for a point that somebody asked for: a listed one of the same family, operator and shape that has
// all its tags, or one that the family makes for it. Empty: no family measures it. Its value is the one asked
// for.
[[nodiscard]] std::optional<WorkItem> item_for(const WantedPoint& wanted, const std::vector<WorkItem>& listed,
                                               const Device& device);

}  // namespace stagecraft
