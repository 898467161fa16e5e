#include "calibrate/bench/families.hpp"

#include <algorithm>
#include <iterator>

namespace stagecraft {
namespace {

bool satisfies(const Sample& listed, const Sample& wanted) {
  if (listed.family != wanted.family || listed.op != wanted.op || listed.shape != wanted.shape) return false;
  return std::ranges::all_of(wanted.tags, [&](const auto& tag) {
    const auto found = listed.tags.find(tag.first);
    return found != listed.tags.end() && found->second == tag.second;
  });
}

}  // namespace

std::vector<WorkItem> list_items(const std::vector<std::string>& families, const Device& device) {
  std::vector<WorkItem> items;
  for (const Family& family : kFamilies) {
    if (!families.empty() && std::ranges::find(families, family.is.name) == families.end()) continue;
    std::ranges::move(family.items(device), std::back_inserter(items));
  }
  return items;
}

std::optional<WorkItem> item_for(const WantedPoint& wanted, const std::vector<WorkItem>& listed,
                                 const Device& device) {
  std::optional<WorkItem> item;
  for (const Family& family : kFamilies)  // what is made for it first: that fills missing tags with defaults
    if (!item && family.item_for != nullptr) item = family.item_for(wanted.point, device);
  const auto found = std::ranges::find_if(
      listed, [&](const WorkItem& one) { return satisfies(one.prototype, wanted.point); });
  if (!item && found != listed.end()) item = *found;
  if (item) item->value = wanted.value;
  return item;
}

}  // namespace stagecraft
