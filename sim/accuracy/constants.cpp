#include "sim/accuracy/constants.hpp"

#include <algorithm>
#include <optional>

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

// A value or a time (in seconds) of a scenario with a profile and a cluster, found by `Place`.
template <class Place>
constexpr ModelConstant constant(std::string_view name, std::string_view meaning, Place) {
  return {.name = name,
          .meaning = meaning,
          .get = [](const Scenario& scenario) { return number_of(Place{}(scenario)); },
          .set = [](Scenario& scenario, double value) { assign(Place{}(scenario), value); }};
}

// A value that a profile may leave out, where it is `otherwise`.
template <int otherwise, class Place>
constexpr ModelConstant optional_constant(std::string_view name, std::string_view meaning, Place) {
  return {.name = name,
          .meaning = meaning,
          .get = [](const Scenario& scenario) -> double {
            const std::optional<Sourced<double>>& given = Place{}(scenario);
            return given ? given->value : otherwise;
          },
          .set =
              [](Scenario& scenario, double value) {
                Place{}(scenario) = {.value = value, .provenance = Provenance::kAssumed, .source = {}};
              }};
}

// A share of the NICs that some fabrics give to some groups; the others have none to move.
template <std::optional<double> FabricSpec::*share>
constexpr ModelConstant own_share(std::string_view name, std::string_view meaning) {
  return {.name = name,
          .meaning = meaning,
          .get = [](const Scenario& scenario) -> double {
            const FabricSpec& fabric = scenario.cluster->fabric;
            return (fabric.*share).value_or(fabric.collective_efficiency);
          },
          .set =
              [](Scenario& scenario, double value) {
                std::optional<double>& own = scenario.cluster->fabric.*share;
                if (own) own = value;
              }};
}

// 1: as the curves say; all of them faster or slower by a factor.
void scale_attention(Scenario& scenario, double factor) {
  for (FlashKernel& kernel : scenario.profile->attention.kernels)
    for (FlashPass* pass : {&kernel.forward, &kernel.backward})
      for (FlashCurve* curve : {&pass->causal, &pass->dense}) curve->rate = curve->rate * factor;
}

// 1: tiles and waves as the library cuts them; 0: a GEMM of any shape fills the device. The table's rows are
// compared with the formula again, so that the table still counts near its rows.
void quantise(Scenario& scenario, double on) {
  if (on != 0) return;
  GemmModel& gemm = scenario.profile->gemm;
  gemm.tiles = {{.m = 1, .n = 1, .rate = 1}};
  gemm.prologue_k = 0;
  gemm.split_k_max = 1;
  gemm.table.radius = 0;
  gemm.table.rows.clear();
  gemm.fp8_table.reset();
}

// A fabric without a site term has none to move.
bool has_site_term(const Scenario& scenario) {
  const FabricSpec& fabric = scenario.cluster->fabric;
  return fabric.tensor_collective_factor != 1 || fabric.tensor_collective_overhead != Duration{};
}

// Sets the number of servers that share a tier of NVSwitches.
void widen_nvlink(Scenario& scenario, double servers) {
  for (NodeGroup& group : scenario.cluster->groups)
    if (group.count % static_cast<int>(servers) == 0) group.node.nvlink_domain = static_cast<int>(servers);
}

constexpr ModelConstant kConstants[] = {
    constant(
        "gemm.scale", "products in training over those of the table: the clock under sustained power",
        [](auto& s) -> auto& { return s.profile->gemm.scale.value; }),
    constant(
        "gemm.fp8_factor", "products in fp8 over those in 16 bit, each of its own peak",
        [](auto& s) -> auto& { return s.profile->gemm.fp8_factor.value; }),
    constant(
        "gemm.batched_efficiency", "batched products of unfused attention, of peak",
        [](auto& s) -> auto& { return s.profile->gemm.batched_efficiency.value; }),
    constant(
        "gemm.misaligned_factor", "batched products with a dimension that is no multiple of 8",
        [](auto& s) -> auto& { return s.profile->gemm.misaligned_factor.value; }),
    {"gemm.quantisation", "1: tiles and waves; 0: every product fills the device",
     [](const Scenario&) -> double { return 1; }, quantise},
    constant(
        "gemm.correction_radius", "reach of the table's rows, in natural logarithms of the shape",
        [](auto& s) -> auto& { return s.profile->gemm.table.radius; }),
    constant(
        "memory_efficiency", "memory-bound kernels, of the memory bandwidth",
        [](auto& s) -> auto& { return s.profile->memory_efficiency.value; }),
    constant(
        "loss_traffic", "bytes of the loss over those of unfused kernels",
        [](auto& s) -> auto& { return s.profile->loss_traffic.value; }),
    {"attention.rate", "rates of all flash kernels, over those of the curves",
     [](const Scenario&) -> double { return 1; }, scale_attention},
    constant(
        "tensor_overlap", "share of overlapped tensor collectives that is hidden",
        [](auto& s) -> auto& { return s.profile->tensor_overlap.value; }),
    constant(
        "gradient_overlap_slowdown", "backward beside a reduction, over backward alone",
        [](auto& s) -> auto& { return s.profile->gradient_overlap_slowdown.value; }),
    constant(
        "sharded_overlap_slowdown", "1 and the share of sharded traffic that passes beside it lose",
        [](auto& s) -> auto& { return s.profile->sharded_overlap_slowdown.value; }),
    optional_constant<0>(
        "gpu_variability", "standard deviation of compute between GPUs of one kind",
        [](auto& s) -> auto& { return s.profile->gpu_variability; }),
    constant(
        "host.kernel_gap", "seconds between two kernels",
        [](auto& s) -> auto& { return s.profile->host.kernel_gap.value; }),
    constant(
        "host.launch", "seconds of the host a kernel",
        [](auto& s) -> auto& { return s.profile->host.launch.value; }),
    optional_constant<1>(
        "host.slowdown", "host of the device over that of a DGX H100",
        [](auto& s) -> auto& { return s.profile->host.slowdown; }),
    constant(
        "host.per_iteration", "seconds of the host an iteration",
        [](auto& s) -> auto& { return s.profile->host.per_iteration.value; }),
    constant(
        "fabric.collective_efficiency", "collectives over nodes, of the node's NICs",
        [](auto& s) -> auto& { return s.cluster->fabric.collective_efficiency; }),
    own_share<&FabricSpec::rail_efficiency>(
        "fabric.rail_efficiency", "the same of groups with one rank in each node, where a fabric says so"),
    own_share<&FabricSpec::crossing_efficiency>(
        "fabric.crossing_efficiency", "the same of groups whose rings cross rails, where a fabric says so"),
    constant(
        "fabric.collective_latency", "seconds of a collective over nodes",
        [](auto& s) -> auto& { return s.cluster->fabric.collective_latency; }),
    constant(
        "fabric.point_to_point_efficiency", "messages between nodes, of a NIC",
        [](auto& s) -> auto& { return s.cluster->fabric.point_to_point_efficiency; }),
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
    constant(
        "piece_overhead", "seconds of the host for a rank's piece in a list that a collective takes",
        [](auto& s) -> auto& { return s.options.rules.piece_overhead; }),
    constant(
        "operator_overhead", "seconds of the host for an operator that the framework calls",
        [](auto& s) -> auto& { return s.options.rules.operator_overhead; }),
    constant(
        "kernel_overhead", "seconds of the host for each further launch inside an operator",
        [](auto& s) -> auto& { return s.options.rules.kernel_overhead; }),
    constant(
        "exchange_overhead", "seconds added to each pipeline message that its sender waits for",
        [](auto& s) -> auto& { return s.options.rules.exchange_overhead.value; }),
    constant(
        "tensor_collective_overhead",
        "seconds added to each tensor-parallel all-reduce, half to a part of one",
        [](auto& s) -> auto& { return s.options.rules.tensor_collective_overhead.value; }),
};

}  // namespace

std::span<const ModelConstant> model_constants() {
  return kConstants;
}

const ModelConstant* find_constant(std::string_view name) {
  const auto found = std::ranges::find(kConstants, name, &ModelConstant::name);
  return found == std::end(kConstants) ? nullptr : &*found;
}

}  // namespace stagecraft
