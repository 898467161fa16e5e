#include "sim/explain/sensitivities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "base/ceil_div.hpp"
#include "base/text.hpp"
#include "sim/explain/figures.hpp"
#include "sim/simulate.hpp"
#include "topology/host_link.hpp"

namespace stagecraft {
namespace {

constexpr double kMore = 1.1;

template <class Rate>
void grow(Rate& rate) {
  rate = rate * kMore;
}
void grow(Duration& time) {
  time = from_seconds(to_seconds(time) * kMore);
}
void grow(std::vector<Duration>& times) {
  for (Duration& time : times) grow(time);
}

// The part that the job runs on, and the whole where that is another.
template <class Change>
void each_cluster(Scenario& scenario, const Change& change) {
  if (scenario.cluster) change(*scenario.cluster);
  if (scenario.fabric) change(*scenario.fabric);
}

// Changes the profile of every device; false where there is none.
template <class Change>
bool each_profile(Scenario& scenario, const Change& change) {
  if (!scenario.profile) return false;
  change(*scenario.profile);
  for (HardwareProfile& profile : scenario.group_profiles) change(profile);
  return true;
}

void grow(FlashKernel& kernel) {
  for (FlashPass* pass : {&kernel.forward, &kernel.backward})
    for (FlashCurve* curve : {&pass->causal, &pass->dense}) grow(curve->rate);
}

// Each changes the scenario and returns whether it has the input.
bool more_compute(Scenario& scenario) {
  return each_profile(scenario, [](HardwareProfile& profile) {
    DeviceFacts& device = profile.device;
    for (FlopRate* peak : {&device.peak_fp32, &device.peak_fp16, &device.peak_bf16, &device.peak_fp8})
      grow(*peak);
    for (FlashKernel& kernel : profile.attention.kernels) grow(kernel);
    for (NarrowFlashKernel& narrow : profile.attention.narrow) grow(narrow.kernel);
  });
}

bool more_memory_bandwidth(Scenario& scenario) {
  return each_profile(scenario, [](HardwareProfile& profile) { grow(profile.device.memory_bandwidth); });
}

bool more_nvlink(Scenario& scenario) {
  bool some = false;
  each_cluster(scenario, [&](ClusterSpec& cluster) {
    some = some || has_nvlink(cluster);
    scale_nvlink(cluster, kMore);
  });
  return some;
}

bool more_nics(Scenario& scenario) {
  bool some = false;
  each_cluster(scenario, [&](ClusterSpec& cluster) {
    some = some || cluster.server_count() > 1;
    scale_network(cluster, kMore);
  });
  return some;
}

// The ways to the host and its memory are inputs where something is offloaded.
bool more_pcie(Scenario& scenario) {
  if (!scenario.cluster || scenario.offload == OffloadSpec{}) return false;
  each_cluster(scenario, [](ClusterSpec& cluster) {
    for (NodeGroup& group : cluster.groups)
      for (Bandwidth* rate : {&group.node.pcie, &group.node.pcie_uplink}) grow(*rate);
  });
  return true;
}

bool more_host_memory_bandwidth(Scenario& scenario) {
  if (!scenario.cluster || scenario.offload == OffloadSpec{}) return false;
  each_cluster(scenario, [](ClusterSpec& cluster) {
    for (NodeGroup& group : cluster.groups) {
      Bandwidth& rate = group.node.host_memory_bandwidth;
      if (rate == Bandwidth(0)) rate = kAssumedHostMemory;
      grow(rate);
    }
  });
  return true;
}

bool more_network_latency(Scenario& scenario) {
  bool some = false;
  each_cluster(scenario, [&](ClusterSpec& cluster) {
    some = some || cluster.server_count() > 1;
    FabricSpec& fabric = cluster.fabric;
    for (Duration* latency : {&fabric.switch_latency, &fabric.collective_latency, &fabric.step_latency,
                              &fabric.point_to_point_latency})
      grow(*latency);
  });
  return some;
}

// The points of the curve are delayed by as much as its formula.
void grow_latency(CollectiveFit& fit) {
  const Duration before = fit.latency;
  grow(fit.latency);
  for (CollectivePoint& point : fit.points) point.time += fit.latency - before;
}

bool more_latency_in_nodes(Scenario& scenario) {
  if (!scenario.cluster) return false;
  const bool some = each_profile(scenario, [](HardwareProfile& profile) {
    for (CollectiveFit& fit : profile.collectives) grow_latency(fit);
  });
  if (!some) return false;
  each_cluster(scenario, [](ClusterSpec& cluster) {
    for (NodeGroup& group : cluster.groups) grow(group.node.nvlink_latency);
  });
  return true;
}

bool more_launch_cost(Scenario& scenario) {
  for (Duration* cost : {&scenario.options.rules.operator_overhead, &scenario.options.rules.kernel_overhead})
    grow(*cost);
  return each_profile(scenario, [](HardwareProfile& profile) {
    for (Sourced<Duration>* cost : {&profile.host.kernel_gap, &profile.host.launch}) grow(cost->value);
  });
}

bool more_host_time(Scenario& scenario) {
  return each_profile(scenario, [](HardwareProfile& profile) { grow(profile.host.per_iteration.value); });
}

template <std::vector<Duration> StagesSpec::*Cost>
bool more_stage_cost(Scenario& scenario) {
  auto* stages = std::get_if<StagesSpec>(&scenario.model);
  if (stages == nullptr) return false;
  grow(stages->*Cost);
  return true;
}

struct Input {
  const char* name;
  bool (*more)(Scenario&);
};
constexpr std::array<Input, 13> kInputs = {
    {{"compute speed", more_compute},
     {"memory bandwidth", more_memory_bandwidth},
     {"NVLink bandwidth", more_nvlink},
     {"NIC bandwidth", more_nics},
     {"PCIe bandwidth", more_pcie},
     {"host memory bandwidth", more_host_memory_bandwidth},
     {"network latency", more_network_latency},
     {"latency inside a node", more_latency_in_nodes},
     {"launch cost of kernels", more_launch_cost},
     {"host time per iteration", more_host_time},
     {"forward of a stage", more_stage_cost<&StagesSpec::forward>},
     {"input gradient of a stage", more_stage_cost<&StagesSpec::input_gradient>},
     {"weight gradient of a stage", more_stage_cost<&StagesSpec::weight_gradient>}}};

Sensitivity measured(const Scenario& changed, const std::string& path, const Amount& base) {
  Sensitivity result;
  try {
    const std::optional<Figure> figure = figure_at(figures_of(simulate(changed)), path);
    if (!figure) {
      result.problem = "the result has no such figure any more";
      return result;
    }
    result.value = figure->value;
    if (base.value() != 0) result.difference = figure->value.value() / base.value() - 1;
  } catch (const ScenarioError& error) {
    result.problem = error.diagnostics().front().message;
  }
  return result;
}

// The smallest batch, at least a tenth larger, that the plan and the schedule allow.
std::optional<std::int64_t> next_batch(const Scenario& scenario) {
  const std::int64_t now = scenario.training.global_batch_size;
  Diagnostics ignored;
  const std::optional<Prepared> prepared = prepare(scenario, ignored);
  if (!prepared) return std::nullopt;
  const std::int64_t step = now / prepared->plan.micro_batches;
  Scenario changed = scenario;
  constexpr int kTries = 64;  // interleaving wants multiples of the stages
  std::int64_t batch = now + step * ceil_div(now, step * 10);
  for (int i = 0; i < kTries; ++i, batch += step) {
    changed.training.global_batch_size = batch;
    Diagnostics diagnostics;
    if (prepare(changed, diagnostics)) return batch;
  }
  return std::nullopt;
}

}  // namespace

bool has_nvlink(const ClusterSpec& cluster) {
  return std::ranges::any_of(cluster.groups,
                             [](const NodeGroup& group) { return group.node.nvlink > Bandwidth(0); });
}

std::vector<Sensitivity> sensitivities(const Scenario& scenario, const std::string& path,
                                       const Amount& base) {
  std::vector<Sensitivity> results;
  for (const Input& input : kInputs) {
    Scenario changed = scenario;
    if (!input.more(changed)) continue;
    Sensitivity& result = results.emplace_back(measured(changed, path, base));
    result.input = input.name;
    result.change = "+10 %";
  }
  if (const std::optional<std::int64_t> batch = next_batch(scenario)) {
    Scenario changed = scenario;
    changed.training.global_batch_size = *batch;
    Sensitivity& result = results.emplace_back(measured(changed, path, base));
    result.input = "training.global_batch_size";
    result.change =
        fmt::format("{} -> {}", with_thousands(scenario.training.global_batch_size), with_thousands(*batch));
  }
  return results;
}

}  // namespace stagecraft
