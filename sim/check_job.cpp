#include "sim/check_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/text.hpp"
#include "sim/lower/background.hpp"
#include "sim/lower/fault_plan.hpp"
#include "sim/lower/price_gradients.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "sim/price_iteration.hpp"
#include "sim/scenario/device_modes.hpp"
#include "sim/scenario/load_faults.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

// Shared links do not support clusters of several devices yet.
void check_devices(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.group_profiles.empty() || !scenario.network.shared()) return;
  diagnostics.error(
      {.code = "not-supported-yet",
       .where = place_of(scenario, "network"),
       .path = "network",
       .message = "links that flows share are not supported yet on a cluster of several devices",
       .hint = "use network: closed-form"});
}

// Every GPU must reach every other without the missing links: all prices assume it.
bool check_ways(const Scenario& scenario, Diagnostics& diagnostics) {
  if (!scenario.cluster) return true;
  const ClusterSpec& spec = whole_cluster(scenario);
  std::vector<std::string> missing;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    if (!spec.links[i].missing) continue;
    missing.push_back(in_quotes(spec.links[i].name));
    if (!first) first = i;
  }
  if (!first) return true;
  const Cluster cluster(spec);
  const auto pair = cluster.unreachable();
  if (!pair) return true;
  const std::string path = fmt::format("cluster.links.{}.missing", *first);
  diagnostics.error(
      {.code = "no-way",
       .where = place_of(scenario, path),
       .path = path,
       .message = fmt::format("no way is left from {} to {} without {}", cluster.name_of(pair->first),
                              cluster.name_of(pair->second), join(missing, " and ")),
       .hint = "keep one link of each way, or take the node out of the cluster"});
  return false;
}

// A faulty GPU must be one of the job's GPUs.
void check_faulty_gpus(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    const FaultSpec& fault = scenario.faults[i];
    const auto beyond = std::ranges::find_if(fault.ranks, [&](int rank) { return rank >= plan.gpus(); });
    if (beyond == fault.ranks.end()) continue;
    const std::string path = fmt::format("faults.{}.gpu", i);
    diagnostics.error({.code = "out-of-range",
                       .where = place_of(scenario, path),
                       .path = path,
                       .message = fmt::format("GPU {} is not one of the job's {}", *beyond, plan.gpus()),
                       .hint = fmt::format("GPUs are 0 to {}", plan.gpus() - 1)});
  }
}

// The links of a cluster, the background load on each, and the least capacity that must remain.
class SlowedLinks {
 public:
  explicit SlowedLinks(const Scenario& scenario)
      : cluster_(whole_cluster(scenario)),
        usual_(as_the_rule_says(whole_cluster(scenario))),
        load_(background_load(cluster_, scenario.network.background)) {}

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] Bandwidth capacity(EdgeId link) const { return cluster_.link(link).capacity; }
  [[nodiscard]] Bandwidth load(EdgeId link) const { return load_[link]; }

  // Does the link keep enough capacity when a fault leaves this share of it?
  [[nodiscard]] bool suffices(EdgeId link, double share) const {
    const Link& ends = cluster_.link(link);
    const EdgeId same = usual_.graph().find(ends.from, ends.to).value();
    return share * ends.capacity - load_[link] >= kLeastLinkShare * usual_.link(same).capacity;
  }

 private:
  static ClusterSpec as_the_rule_says(ClusterSpec spec) {
    spec.links.clear();
    return spec;
  }

  Cluster cluster_, usual_;
  IdVector<EdgeId, Bandwidth> load_;
};

std::string gigabytes(Bandwidth rate) {
  return fmt::format("{:.12g} GB/s", rate.count() * 1e-9);
}

// Degraded links must keep enough capacity beside the background traffic.
void check_degraded_links(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics) {
  const bool degrades = std::ranges::any_of(
      scenario.faults, [](const FaultSpec& fault) { return fault.kind == FaultKind::kDegradedLink; });
  if (!degrades || diagnostics.has_errors()) return;
  const SlowedLinks links(scenario);
  for (const LinkShareChange& change : plan_faults(scenario.faults, plan, &links.cluster(), false).links) {
    if (links.suffices(change.link, change.share)) continue;
    std::string message =
        fmt::format("leave {} of the {} of {}", gigabytes(change.share * links.capacity(change.link)),
                    gigabytes(links.capacity(change.link)), links.cluster().link_name(change.link));
    if (links.load(change.link) > Bandwidth(0))
      message += fmt::format(", and background traffic asks {}", gigabytes(links.load(change.link)));
    diagnostics.error({.code = "out-of-range",
                       .where = place_of(scenario, "faults"),
                       .path = "faults",
                       .message = std::move(message),
                       .hint = "leave the training at least a millionth of the link: use larger factors, or "
                               "lower rates"});
    return;
  }
}

// The background traffic that takes most of a link; the first of equals.
std::size_t heaviest_on(EdgeId link, const Cluster& cluster, const std::vector<BackgroundSpec>& traffic) {
  std::size_t heaviest = 0;
  Bandwidth most(0);
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    const Bandwidth part = background_load(cluster, {&traffic[i], 1})[link];
    if (part > most) heaviest = i, most = part;
  }
  return heaviest;
}

// Background traffic must leave some capacity on every link.
void check_background(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.network.background.empty()) return;
  const SlowedLinks links(scenario);
  for (std::uint32_t i = 0; i < links.cluster().link_count(); ++i) {
    const EdgeId link(i);
    if (links.load(link) == Bandwidth(0) || links.suffices(link, 1)) continue;
    const std::size_t heaviest = heaviest_on(link, links.cluster(), scenario.network.background);
    diagnostics.error(
        {.code = "out-of-range",
         .where = place_of(scenario, fmt::format("network.background.{}.rate", heaviest)),
         .path = "network.background",
         .message = fmt::format("the traffic asks {} of {}, which has {}", gigabytes(links.load(link)),
                                links.cluster().link_name(link), gigabytes(links.capacity(link))),
         .hint = "leave the training at least a millionth of it: use lower rates"});
    return;
  }
}

// Do gradients or weights move in buckets, beside the passes?
bool fills_buckets(const Scenario& scenario) {
  const int zero = zero_stage_in_effect(scenario);
  const bool gathers = zero >= 1 && scenario.overlap.parameters;
  return zero < 3 && has_replicas(scenario) && (gathers || scenario.overlap.gradients);
}

}  // namespace

bool check_cluster(const Scenario& scenario, Diagnostics& diagnostics) {
  const bool connected = check_ways(scenario, diagnostics);
  check_device_modes(scenario, diagnostics);
  check_devices(scenario, diagnostics);
  if (connected) check_background(scenario, diagnostics);
  return connected;
}

void check_faults(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics) {
  check_faulty_gpus(scenario, plan, diagnostics);
  check_degraded_links(scenario, plan, diagnostics);
}

bool check_buckets(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || !fills_buckets(scenario)) return true;
  const std::int64_t size = bucket_parameters(pricing_request(scenario, plan));
  if (2 * (parameter_count(*model) / size) <= kMost) return true;  // each on two ranks at most
  std::int64_t parameters = 0;
  for (int rank = 0; rank < plan.pipeline; ++rank) parameters += rank_share(*model, plan, rank).all();
  if (parameters / size <= kMost) return true;
  const std::string buckets = with_thousands(parameters / size), most = with_thousands(kMost),
                    enough = with_thousands(parameters / kMost + 1);
  if (scenario.options.bucket_parameters)
    diagnostics.error(
        {.code = "too-many",
         .where = place_of(scenario, "options.bucket_parameters"),
         .path = "options.bucket_parameters",
         .message = fmt::format("makes {} buckets, and at most {} are simulated", buckets, most),
         .hint =
             fmt::format("it counts parameters: {} or more would do, and the usual is 40,000,000", enough)});
  else
    diagnostics.error(
        {.code = "too-many",
         .where = place_of(scenario, "model"),
         .path = "model",
         .message =
             fmt::format("its {} parameters on the stages of a pipeline make {} buckets, and at most {} are "
                         "simulated",
                         with_thousands(parameters), buckets, most),
         .hint =
             fmt::format("split it over more tensor ranks, or give options.bucket_parameters: {}", enough)});
  return false;
}

}  // namespace stagecraft
