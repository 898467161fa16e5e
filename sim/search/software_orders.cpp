#include "sim/search/software_orders.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

std::vector<std::string> without_chunks(const SearchAxis& orders) {
  std::vector<std::string> names;
  for (const YamlNode& value : orders.values) {
    const ScheduleKind* kind = find_schedule(value.text);
    if (kind != nullptr && !kind->chunked) names.push_back(value.text);
  }
  return names;
}

}  // namespace

RunOrders run_orders(const Scenario& scenario, const SearchSpace& space) {
  const SearchAxis* orders = space.find("schedule");
  const SoftwareRules& software = scenario.options.rules;
  const std::string& order = scenario.schedule.name;
  if (orders == nullptr || !orders->usual || software.may_run(order)) return {};
  const std::vector<std::string> plain = without_chunks(*orders);
  const bool another_runs =
      std::ranges::any_of(plain, [&](const std::string& name) { return software.may_run(name); });
  return {.stages = false, .one_stage = !another_runs && !plain.empty() && order == plain.front()};
}

}  // namespace stagecraft
