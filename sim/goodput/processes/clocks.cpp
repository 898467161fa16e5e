#include "sim/goodput/processes/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"

namespace stagecraft {

namespace {

// The law of lemons ends at the 20th incident (failure_spec.hpp).
constexpr int kMostLemonIncidents = 19;

// Two numbers below 256 in one. The loader refuses more processes, laws of one and causes of one.
constexpr int pair_of(int low, int high) {
  return low | high << 8;
}

}  // namespace

NodeClocks::NodeClocks(int process, std::vector<ClockLaw> laws, Fleet& fleet)
    : process_(process),
      laws_(std::move(laws)),
      fleet_(fleet),
      draws_(laws_.size() * as_index(fleet.nodes())) {
  SC_CHECK(laws_.size() < 256, "the number of a component has eight bits of a stream's key");
}

std::uint32_t& NodeClocks::draws(int law, int node) {
  return draws_[as_index(law) * as_index(fleet_.nodes()) + as_index(node)];
}

void NodeClocks::back(int node, Duration now) {
  for (int law = 0; law < static_cast<int>(laws_.size()); ++law) wind(law, node, now);
}

// The next failure of a node that is up; nothing is kept of one beyond the horizon.
void NodeClocks::wind(int law, int node, Duration now) {
  const ClockLaw& of = laws_[as_index(law)];
  const std::uint32_t number = draws(law, node)++;
  const auto entity = static_cast<std::uint32_t>(node);
  Stream stream = fleet_.stream(pair_of(process_, law), entity, Purpose::kTimeToFailure, number);
  const double rate = of.lemon_factor == 1
                          ? of.rate_per_second
                          : of.rate_per_second * std::pow(of.lemon_factor, std::min(fleet_.incidents_of(node),
                                                                                    kMostLemonIncidents));
  const Duration gap = of.shape == 1 ? stream.exponential(rate) : stream.weibull(of.shape, rate);
  if (gap >= fleet_.horizon() - now) return;
  const int cause = of.fixed_cause >= 0 ? of.fixed_cause : fleet_.choose_cause(process_, entity, number);
  fleet_.schedule({.time = now + gap,
                   .kind = fleet_.kind_of(process_, cause),
                   .id = node,
                   .process = process_,
                   .node = node,
                   .what = pair_of(cause, law),
                   .number = number + 1});
}

void NodeClocks::fire(const Event& event) {
  const int law = event.what >> 8, cause = event.what & 255;  // pair_of
  if (!fleet_.up(event.node) || event.number != draws(law, event.node)) return;
  const auto entity = static_cast<std::uint32_t>(event.node);
  fleet_.fail({.time = event.time,
               .process = process_,
               .node = event.node,
               .cause = cause,
               .id = event.id,
               .number = event.number,
               .entity = entity | static_cast<std::uint32_t>(law) << 24});  // nodes are fewer than 2^24
  if (fleet_.up(event.node) && event.number == draws(law, event.node)) wind(law, event.node, event.time);
}

// Redraws the time of exponential clocks whose rate has grown: the law has no memory. Weibull clocks run on.
void NodeClocks::failed(int node, Duration now) {
  if (!fleet_.up(node)) return;
  for (int law = 0; law < static_cast<int>(laws_.size()); ++law)
    if (laws_[as_index(law)].lemon_factor != 1 && laws_[as_index(law)].shape == 1) wind(law, node, now);
}

}  // namespace stagecraft
