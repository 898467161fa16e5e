#include "sim/accuracy/constants.hpp"

#include <algorithm>

#include "calibrate/profile/tile_model.hpp"

namespace stagecraft {
namespace {

double number_of(double value) {
  return value;
}
double number_of(Duration time) {
  return to_seconds(time);
}
void assign(double& value, double number) {
  value = number;
}
void assign(Duration& time, double number) {
  time = from_seconds(number);
}

// A value or a time (in seconds) of a scenario with a profile and a cluster, found by `place`.
template <auto place>
constexpr ModelConstant constant(std::string_view name, std::string_view meaning) {
  return {.name = name,
          .meaning = meaning,
          .get = [](const Scenario& scenario) { return number_of(place(scenario)); },
          .set = [](Scenario& scenario, double value) { assign(place(scenario), value); }};
}

// 1: as the curves say; all of them faster or slower by a factor.
void scale_attention(Scenario& scenario, double factor) {
  for (FlashKernel& kernel : scenario.profile->attention.kernels)
    for (FlashPass* pass : {&kernel.forward, &kernel.backward})
      for (FlashCurve* curve : {&pass->causal, &pass->dense}) curve->rate = curve->rate * factor;
}

// 1: tiles and waves as the library cuts them; 0: a product of any shape fills the device. The table's rows
// are compared with the formula anew, so that near its rows the table still speaks.
void quantise(Scenario& scenario, double on) {
  if (on != 0) return;
  GemmModel& gemm = scenario.profile->gemm;
  gemm.tiles = {{.m = 1, .n = 1, .rate = 1}};
  gemm.prologue_k = 0;
  gemm.split_k_max = 1;
  gemm.correction_radius = 0;
  gemm.rows.clear();
}

// A fabric without a site term has none to move.
bool has_site_term(const Scenario& scenario) {
  const FabricSpec& fabric = scenario.cluster->fabric;
  return fabric.tensor_collective_factor != 1 || fabric.tensor_collective_overhead != Duration{};
}

// How many servers share a tier of NVSwitches.
void widen_nvlink(Scenario& scenario, double servers) {
  for (NodeGroup& group : scenario.cluster->groups)
    if (group.count % static_cast<int>(servers) == 0) group.node.nvlink_domain = static_cast<int>(servers);
}

constexpr ModelConstant kConstants[] = {constant < [](auto& s) -> auto& {return s.profile->gemm.scale.value;
}  // namespace
> ("gemm.scale", "products in training over those of the table: the clock under sustained power"),
    constant < [](auto& s) -> auto& {
  return s.profile->gemm.batched_efficiency.value;
}
> ("gemm.batched_efficiency", "batched products of unfused attention, of peak"), constant < [
](auto& s) -> auto& {
  return s.profile->gemm.misaligned_factor.value;
}
> ("gemm.misaligned_factor", "batched products with a dimension that is no multiple of 8"),
    {"gemm.quantisation", "1: tiles and waves; 0: every product fills the device",
     [](const Scenario&) -> double { return 1; }, quantise},
    constant < [](auto& s) -> auto& {
  return s.profile->gemm.correction_radius;
}
> ("gemm.correction_radius", "reach of the table's rows, in natural logarithms of the shape"), constant < [
](auto& s) -> auto& {
  return s.profile->memory_efficiency.value;
}
> ("memory_efficiency", "memory-bound kernels, of the memory bandwidth"), constant < [](auto& s) -> auto& {
  return s.profile->loss_traffic.value;
}
> ("loss_traffic", "bytes of the loss over those of unfused kernels"),
    {"attention.rate", "rates of all flash kernels, over those of the curves",
     [](const Scenario&) -> double { return 1; }, scale_attention},
    constant < [](auto& s) -> auto& {
  return s.profile->tensor_overlap.value;
}
> ("tensor_overlap", "share of overlapped tensor collectives that is hidden"), constant < [
](auto& s) -> auto& {
  return s.profile->gradient_overlap_slowdown.value;
}
> ("gradient_overlap_slowdown", "backward beside a reduction, over backward alone"), constant < [
](auto& s) -> auto& {
  return s.profile->sharded_overlap_slowdown.value;
}
> ("sharded_overlap_slowdown", "passes beside sharded traffic, over passes alone"), constant < [
](auto& s) -> auto& {
  return s.profile->host.kernel_gap.value;
}
> ("host.kernel_gap", "seconds between two kernels"), constant < [](auto& s) -> auto& {
  return s.profile->host.launch.value;
}
> ("host.launch", "seconds of the host a kernel"), constant < [](auto& s) -> auto& {
  return s.profile->host.per_iteration.value;
}
> ("host.per_iteration", "seconds of the host an iteration"), constant < [](auto& s) -> auto& {
  return s.cluster->fabric.collective_efficiency;
}
> ("fabric.collective_efficiency", "collectives over nodes, of the node's NICs"),
    {"fabric.rail_efficiency", "the same of groups with one rank in each node, where a fabric says so",
     [](const Scenario& s) -> double {
       const FabricSpec& fabric = s.cluster->fabric;
       return fabric.rail_efficiency.value_or(fabric.collective_efficiency);
     },
     [](Scenario& s, double value) {
       if (s.cluster->fabric.rail_efficiency) s.cluster->fabric.rail_efficiency = value;
     }},
    {"fabric.crossing_efficiency", "the same of groups whose rings cross rails, where a fabric says so",
     [](const Scenario& s) -> double {
       const FabricSpec& fabric = s.cluster->fabric;
       return fabric.crossing_efficiency.value_or(fabric.collective_efficiency);
     },
     [](Scenario& s, double value) {
       if (s.cluster->fabric.crossing_efficiency) s.cluster->fabric.crossing_efficiency = value;
     }},
    constant < [](auto& s) -> auto& {
  return s.cluster->fabric.collective_latency;
}
> ("fabric.collective_latency", "seconds of a collective over nodes"), constant < [](auto& s) -> auto& {
  return s.cluster->fabric.point_to_point_efficiency;
}
> ("fabric.point_to_point_efficiency", "messages between nodes, of a NIC"),
    {"fabric.tensor_collective_factor", "site term: tensor collectives last so much longer",
     [](const Scenario& s) -> double { return s.cluster->fabric.tensor_collective_factor; },
     [](Scenario& s, double value) {
       if (has_site_term(s)) s.cluster->fabric.tensor_collective_factor = value;
     }},
    {"fabric.tensor_collective_overhead", "site term: seconds added to each tensor collective",
     [](const Scenario& s) -> double { return to_seconds(s.cluster->fabric.tensor_collective_overhead); },
     [](Scenario& s, double value) {
       if (has_site_term(s)) s.cluster->fabric.tensor_collective_overhead = from_seconds(value);
     }},
    {"node.nvlink_domain", "servers that share one tier of NVSwitches",
     [](const Scenario& s) -> double { return s.cluster->groups.front().node.nvlink_domain; }, widen_nvlink},
    constant < [](auto& s) -> auto& {
  return s.options.jitter_per_doubling;
}
> ("jitter_per_doubling", "growth of compute with each doubling of GPUs beyond a node"),
    {"exchange_overhead", "seconds added to each pipeline message that its sender waits for",
     [](const Scenario& s) -> double { return to_seconds(s.options.exchange_overhead); },
     [](Scenario& s, double value) { s.options.exchange_overhead = from_seconds(value); }},
    {"tensor_collective_overhead", "seconds added to each tensor-parallel all-reduce, half to a part of one",
     [](const Scenario& s) -> double { return to_seconds(s.options.tensor_collective_overhead); },
     [](Scenario& s, double value) { s.options.tensor_collective_overhead = from_seconds(value); }},
};  // namespace stagecraft

}  // namespace

std::span<const ModelConstant> model_constants() {
  return kConstants;
}

const ModelConstant* find_constant(std::string_view name) {
  const auto found = std::ranges::find(kConstants, name, &ModelConstant::name);
  return found == std::end(kConstants) ? nullptr : &*found;
}

}  // namespace stagecraft
