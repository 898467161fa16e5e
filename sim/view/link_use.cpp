#include "sim/view/link_use.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// `amount` spread evenly over [begin, end), in units of parts.
void fill_bins(std::vector<double>& bins, double begin, double end, double amount) {
  const auto last = static_cast<double>(bins.size() - 1);
  const auto first_bin = static_cast<std::size_t>(std::clamp(begin, 0.0, last));
  const auto last_bin = static_cast<std::size_t>(std::clamp(end, 0.0, last));
  if (first_bin == last_bin || end <= begin) {
    bins[first_bin] += amount;
    return;
  }
  for (std::size_t bin = first_bin; bin <= last_bin; ++bin) {
    const double from = std::max(begin, static_cast<double>(bin));
    const double to = bin == last_bin ? end : std::min(end, static_cast<double>(bin + 1));
    bins[bin] += amount * std::max(to - from, 0.0) / (end - begin);
  }
}

}  // namespace

std::vector<std::vector<double>> link_use(const Program& program, const Timeline& timeline,
                                          const std::vector<LinkId>& links, std::size_t parts) {
  SC_CHECK(parts > 0, "a chart has a part");
  std::vector<std::vector<double>> out(links.size(), std::vector<double>(parts));
  const double part = to_seconds(timeline.makespan) / static_cast<double>(parts);
  if (part <= 0) return out;
  constexpr std::size_t kNotAsked = static_cast<std::size_t>(-1);
  std::vector<std::size_t> place(program.links.size(), kNotAsked);
  for (std::size_t i = 0; i < links.size(); ++i) place[links[i].index()] = i;
  for (const Flow& flow : program.flows) {
    if (timeline.is_stuck(flow.task) || timeline.never_begins(flow.task)) continue;
    const Duration latency = program.duration[flow.task] - flow.transfer;
    const double begin = to_seconds(timeline.start[flow.task] + latency) / part;
    const double end = to_seconds(timeline.end[flow.task]) / part;
    for (const LinkUse& use : program.uses_of(flow.route)) {
      const std::size_t at = place[use.link.index()];
      if (at == kNotAsked) continue;
      const double bytes = use.flows * flow.rate.count() * to_seconds(flow.transfer);
      fill_bins(out[at], begin, end, bytes / (program.links[use.link].capacity.count() * part));
    }
  }
  return out;
}

}  // namespace stagecraft
