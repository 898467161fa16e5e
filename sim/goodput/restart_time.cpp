#include "sim/goodput/restart_time.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace stagecraft {

Duration restart_time(const std::vector<std::pair<int, Duration>>& rows, int gpus) {
  SC_CHECK(!rows.empty() && rows.front().first >= 1, "a table of restarts has a row");
  const auto above =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.first >= gpus; });
  if (above == rows.end()) return rows.back().second;
  if (above == rows.begin() || above->first == gpus) return above->second;
  const auto below = std::prev(above);
  const double part = std::log(static_cast<double>(gpus) / below->first) /
                      std::log(static_cast<double>(above->first) / below->first);
  return from_seconds(to_seconds(below->second) +
                      part * (to_seconds(above->second) - to_seconds(below->second)));
}

}  // namespace stagecraft
