#include "sim/diff/occupation.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace stagecraft {
namespace {

struct Edge {
  Duration at{};
  std::size_t activity = 0;
  int change = 0;
};

Duration rounded_share(Duration sum, std::size_t parts) {
  const auto n = static_cast<std::int64_t>(parts);
  return Duration((sum.count() + n / 2) / n);
}

}  // namespace

Duration Occupation::exposed_communication() const {
  return std::accumulate(exposed.begin(), exposed.end(), Duration{});
}

Duration Occupation::pipeline_or_idle() const {
  return exposed[static_cast<std::size_t>(Activity::kPipeline)] + idle;
}

Occupation occupation(std::span<const Busy> busy, Duration begin, Duration end) {
  std::vector<Edge> edges;
  for (const Busy& item : busy) {
    const Duration from = std::max(item.begin, begin), to = std::min(item.end, end);
    if (from >= to) continue;
    edges.push_back({from, static_cast<std::size_t>(item.activity), 1});
    edges.push_back({to, static_cast<std::size_t>(item.activity), -1});
  }
  std::ranges::stable_sort(edges, {}, &Edge::at);
  Occupation out{.window = std::max(end - begin, Duration{})};
  std::array<int, kActivityNames.size()> running{};
  Duration at = begin;
  const auto pass = [&](Duration until) {
    const Duration length = until - at;
    at = until;
    std::size_t first = running.size();
    for (std::size_t i = running.size(); i-- > 0;) {
      if (running[i] == 0) continue;
      out.busy[i] += length;
      first = i;
    }
    if (first == running.size()) return;
    (first == 0 ? out.compute : out.exposed[first]) += length;
  };
  for (const Edge& edge : edges) {
    pass(edge.at);
    running[edge.activity] += edge.change;
  }
  out.idle = out.window - out.compute - out.exposed_communication();
  return out;
}

Occupation mean(std::span<const Occupation> windows) {
  SC_CHECK(!windows.empty(), "a mean of nothing");
  Occupation sum;
  for (const Occupation& window : windows) {
    sum.window += window.window;
    sum.compute += window.compute;
    for (std::size_t i = 0; i < sum.busy.size(); ++i) {
      sum.exposed[i] += window.exposed[i];
      sum.busy[i] += window.busy[i];
    }
  }
  Occupation out{.window = rounded_share(sum.window, windows.size()),
                 .compute = rounded_share(sum.compute, windows.size())};
  for (std::size_t i = 0; i < out.busy.size(); ++i) {
    out.exposed[i] = rounded_share(sum.exposed[i], windows.size());
    out.busy[i] = rounded_share(sum.busy[i], windows.size());
  }
  out.idle = out.window - out.compute - out.exposed_communication();
  return out;
}

}  // namespace stagecraft
