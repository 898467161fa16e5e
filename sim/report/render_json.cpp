#include <fmt/format.h>

#include "base/json.hpp"
#include "calibrate/profile/provenance.hpp"
#include "sim/report/render_faults.hpp"
#include "sim/report/render_network.hpp"
#include "sim/report/report.hpp"
#include "sim/report/result_keys.hpp"

namespace stagecraft {
namespace {

void write_bubble(JsonWriter& json, const Bubble& bubble) {
  json.key("bubble").begin_object();
  json.field("ideal_s", bubble.ideal).field("makespan_s", bubble.makespan).field("span_s", bubble.span);
  json.field("over_ideal", bubble.over_ideal).field("fraction", bubble.fraction);
  json.end_object();
}

void write_breakdown(JsonWriter& json, const Report& report) {
  json.key("breakdown_s").begin_object();
  for (std::size_t c = 0; c < kCategoryCount; ++c) json.field(kCategoryNames[c], report.breakdown[c]);
  json.end_object();
}

void write_critical_path(JsonWriter& json, const std::vector<PathShare>& path) {
  json.key("critical_path").begin_array();
  for (const PathShare& share : path) {
    json.begin_object().field("task", share.name).field("count", share.tasks);
    json.field("time_s", share.time).end_object();
  }
  json.end_array();
}

// The running pass in the schedule's notation, "optimizer step" where it is none.
void write_moment(JsonWriter& json, const PeakMoment& moment) {
  const std::string action = moment.action ? to_string(*moment.action) : "optimizer step";
  json.field("peak_at", action).field("in_flight", moment.in_flight);
  if (moment.time) json.field("peak_time_s", *moment.time);
}

void write_stage(JsonWriter& json, const StageMemory& stage) {
  json.begin_object();
  json.field("stage", stage.stage);
  for (const MemoryClass kind : kMemoryClasses)
    json.field(fmt::format("{}_bytes", name_of(kind)), stage.of(kind));
  json.field("peak_bytes", stage.peak());
  json.field("allocated_bytes", stage.allocated()).field("reserved_bytes", stage.reserved());
  if (stage.on_host > Bytes(0)) json.field("host_bytes", stage.on_host);
  write_moment(json, stage.moment);
  json.key("items").begin_array();
  for (const MemoryItem& item : stage.items) {
    json.begin_object()
        .field("class", name_of(item.kind))
        .field("name", item.name)
        .field("bytes", item.size)
        .end_object();
  }
  json.end_array().end_object();
}

void write_offload(JsonWriter& json, const OffloadPrice& offload) {
  json.key("offload").begin_object();
  json.field("available_bytes_per_s", offload.available.count());
  json.field("required_activations_bytes_per_s", offload.required_activations.count());
  json.field("required_weights_bytes_per_s", offload.required_weights.count());
  json.field("optimizer_step_s", offload.optimizer_step).field("stall_s", offload.stall);
  json.end_object();
}

void write_provenance(JsonWriter& json, const ByProvenance& shares) {
  json.key("provenance").begin_object();
  for (std::size_t i = 0; i < shares.size(); ++i) json.field(kProvenanceNames[i], shares[i]);
  json.end_object();
}

void write_shapes(JsonWriter& json, const std::vector<ShapeReport>& shapes) {
  json.key("shapes").begin_array();
  for (const ShapeReport& shape : shapes) {
    json.begin_object().field("shape", shape.shape).field("provenance", name(shape.provenance));
    json.field("share", shape.share).end_object();
  }
  json.end_array();
}

void write_verdict_keys(JsonWriter& json, const MemoryLedger& memory) {
  json.field("verdict", name_of(memory.verdict()));
  json.field("capacity_bytes", memory.capacity).field("peak_bytes", memory.heaviest().peak());
  json.field("peak_stage", memory.heaviest().stage).field("rule", memory.rule());
  if (memory.host.used == Bytes(0)) return;
  json.key("host").begin_object();
  json.field("verdict", name_of(memory.host.verdict()));
  json.field("capacity_bytes", memory.host.capacity).field("used_bytes", memory.host.used).end_object();
}

void write_verdict(JsonWriter& json, const MemoryLedger& memory) {
  json.begin_object();
  write_verdict_keys(json, memory);
  json.end_object();
}

}  // namespace

void write_memory(JsonWriter& json, const MemoryLedger& memory) {
  json.begin_object();
  write_verdict_keys(json, memory);
  json.key("stages").begin_array();
  for (const StageMemory& stage : memory.stages) write_stage(json, stage);
  json.end_array().end_object();
}

void write_result(JsonWriter& json, const Report& report, ResultDetail detail) {
  const bool whole = detail == ResultDetail::kWhole;
  json.field("name", report.name).field("gpus", report.gpus);
  if (report.finishes()) {
    json.field("iteration_time_s", report.iteration_time).key("interval_90_s").begin_array();
    json.value(report.interval_90[0]).value(report.interval_90[1]).end_array();
  } else {
    json.key("iteration_time_s").null().key("interval_90_s").null();
  }
  json.field("samples_per_s", report.samples_per_s()).field("tokens_per_s", report.tokens_per_s());
  json.field("tokens_per_s_per_gpu", report.tokens_per_s() / report.gpus);
  json.field("model_tflops_per_gpu", report.model_flops_per_gpu_s() * 1e-12);
  json.field("hardware_tflops_per_gpu", report.hardware_flops_per_gpu_s() * 1e-12);
  json.field("mfu", report.mfu()).field("hfu", report.hfu());
  write_bubble(json, report.bubble);
  write_breakdown(json, report);
  if (whole) write_critical_path(json, report.critical_path);
  json.key("memory");
  whole ? write_memory(json, report.memory) : write_verdict(json, report.memory);
  if (report.offload.used()) write_offload(json, report.offload);
  if (whole && report.network.shared) {
    json.key("network");
    write_network(json, report);
  }
  if (report.faults) {
    json.key("faults");
    write_faults(json, report);
  }
  write_provenance(json, report.provenance);
  if (whole && !report.shapes.empty()) write_shapes(json, report.shapes);
  json.field("tasks", report.tasks).field("simulated_ranks", report.simulated_ranks);
  json.field("warnings", report.warnings).field("profile", report.profile);
  if (!report.software.empty()) json.field("software", report.software);
  json.field("timeline_hash", report.timeline_hash);
}

std::string render_json(const Report& report) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.result/1").field("scenario", report.scenario);
  write_result(json, report, ResultDetail::kWhole);
  return json.end_object().str();
}

}  // namespace stagecraft
