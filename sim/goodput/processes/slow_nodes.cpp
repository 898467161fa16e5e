#include "sim/goodput/processes/slow_nodes.hpp"

#include <cmath>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {

double mean_slow_seconds(const FailSlow& law) {
  const double low = to_seconds(law.shortest), high = to_seconds(law.longest);
  return low == high ? low : (high - low) / std::log(high / low);
}

double slow_onsets_per_second(const FailSlow& law) {
  if (law.rate_per_node_day) return *law.rate_per_node_day / kSecondsPerDay;
  SC_CHECK(law.share >= 0 && law.share < 1, "a share of time that leaves some");
  return law.share / ((1 - law.share) * mean_slow_seconds(law));
}

SlowNodes::SlowNodes(int process, const FailSlow& law, Fleet& fleet)
    : process_(process),
      law_(law),
      fleet_(fleet),
      rate_(slow_onsets_per_second(law)),
      draws_(as_index(fleet.nodes())) {
  SC_CHECK(law.low_factor >= 1 && law.low_factor <= law.high_factor, "slow is not fast");
}

void SlowNodes::back(int node, Duration now) {
  const std::uint32_t number = draws_[as_index(node)]++;
  Stream stream = fleet_.stream(process_, static_cast<std::uint32_t>(node), Purpose::kSlowOnset, number);
  const Duration gap = stream.exponential(rate_);
  if (gap >= fleet_.horizon() - now) return;
  fleet_.schedule({.time = now + gap,
                   .kind = IncidentKind::kSlow,
                   .id = node,
                   .process = process_,
                   .node = node,
                   .what = kOnset,
                   .number = number + 1});
}

void SlowNodes::fire(const Event& event) {
  const auto node = as_index(event.node);
  if (!fleet_.up(event.node) || event.number != draws_[node]) return;
  if (event.what == kEnd) {
    fleet_.slow(process_, event, law_.part, 1);
    return back(event.node, event.time);
  }
  const auto entity = static_cast<std::uint32_t>(event.node);
  Stream factors = fleet_.stream(process_, entity, Purpose::kSlowFactor, event.number);
  Stream durations = fleet_.stream(process_, entity, Purpose::kSlowDuration, event.number);
  const double factor = law_.low_factor + (law_.high_factor - law_.low_factor) * factors.uniform();
  fleet_.slow(process_, event, law_.part, factor);
  Event end = event;
  const Duration lasts = durations.log_uniform(law_.shortest, law_.longest);
  if (lasts >= fleet_.horizon() - event.time) return;
  end.time += lasts;
  end.kind = IncidentKind::kNormal;
  end.what = kEnd;
  fleet_.schedule(end);
}

void Corruptions::back(int node, Duration now) {
  const std::uint32_t number = draws_[as_index(node)]++;
  Stream stream =
      fleet_.stream(process_, static_cast<std::uint32_t>(node), Purpose::kCorruptionOnset, number);
  const Duration gap = stream.exponential(law_.rate_per_node_day / kSecondsPerDay);
  if (gap >= fleet_.horizon() - now) return;
  fleet_.schedule({.time = now + gap,
                   .kind = IncidentKind::kCorruption,
                   .id = node,
                   .process = process_,
                   .node = node,
                   .what = kOnset,
                   .number = number + 1});
}

void Corruptions::discover_later(const Event& onset) {
  Event discovery = onset;
  if (law_.discovery > Duration(0)) {
    Stream stream =
        fleet_.stream(process_, static_cast<std::uint32_t>(onset.node), Purpose::kDiscovery, onset.number);
    const Duration delay = stream.exponential(1 / to_seconds(law_.discovery));
    if (delay >= fleet_.horizon() - onset.time) return;
    discovery.time += delay;
  }
  discovery.what = kDiscovery;
  discovery.number = static_cast<std::uint32_t>(onsets_.size());
  onsets_.push_back(onset.time);
  fleet_.schedule(discovery);
}

void Corruptions::fire(const Event& event) {
  if (event.what == kDiscovery)
    return fleet_.corrupt({.time = event.time, .process = process_, .node = event.node, .id = event.id},
                          onsets_[event.number]);
  if (!fleet_.up(event.node) || event.number != draws_[as_index(event.node)]) return;
  discover_later(event);
  back(event.node, event.time);
}

}  // namespace stagecraft
