#include <string>

#include "base/json.hpp"
#include "tools/tables/topology_view.hpp"
#include "topology/cluster_view.hpp"

namespace stagecraft {
namespace {

void write_pairs(JsonWriter& json, const Cluster& cluster) {
  const PairClasses pairs = pair_classes(cluster);
  json.field("pairs_sampled", pairs.sampled).key("pairs").begin_array();
  for (const PairClass& pair : pairs.classes)
    json.begin_object()
        .field("class", pair.name)
        .field("pairs", pair.pairs)
        .field("links", pair.links)
        .field("switches", pair.switches)
        .field("latency_s", pair.latency)
        .field("message_latency_s",
               pair.latency + (pair.switches > 0 ? cluster.spec().fabric.point_to_point_latency : Duration{}))
        .field("bandwidth_bytes_per_s", pair.bandwidth.count())
        .end_object();
  json.end_array();
}

void write_axes(JsonWriter& json, const TopologyView& view) {
  if (view.plan == nullptr) return void(json.key("axes_sampled").null().key("axes").null());
  const AxisClasses axes = axis_classes(view.cluster, view.job, *view.plan);
  json.field("axes_sampled", axes.sampled).key("axes").begin_array();
  for (const AxisClass& axis : axes.classes)
    json.begin_object()
        .field("axis", axis.axis)
        .field("ranks", axis.degree)
        .field("class", axis.name)
        .field("share", axis.share)
        .field("switches", axis.switches)
        .field("bandwidth_bytes_per_s", axis.bandwidth.count())
        .end_object();
  json.end_array();
}

}  // namespace

std::string render_topology_json(const TopologyView& view) {
  const Cluster& cluster = view.cluster;
  const ClusterTotals sum = totals(cluster);
  const Bisection half = bisection(cluster);
  JsonWriter json;
  json.begin_object()
      .field("schema", "stagecraft.topology/1")
      .field("scenario", view.scenario.source)
      .field("nodes", sum.nodes);
  json.key("nvlink_domains");
  if (sum.domains != sum.nodes)
    json.value(sum.domains);
  else
    json.null();  // each node for itself
  json.field("gpus", sum.gpus)
      .field("nics", sum.nics)
      .field("switches", sum.switches)
      .field("cables", sum.cables)
      .field("injection_bytes_per_s", sum.injection.count());
  json.key("bisection")
      .begin_object()
      .field("first_gpus", half.first_gpus)
      .field("bandwidth_bytes_per_s", half.bandwidth.count())
      .field("links", half.cut.size())
      .end_object();
  json.key("disjoint_ways");
  if (sum.domains > 1)
    json.value(disjoint_ways(cluster, 0, sum.domains - 1));
  else
    json.null();
  write_pairs(json, cluster);
  write_axes(json, view);
  return json.end_object().str();
}

}  // namespace stagecraft
