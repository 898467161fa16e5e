#include <optional>

#include "base/json.hpp"
#include "sim/diff/trace_diff.hpp"

namespace stagecraft {
namespace {

void write_total(JsonWriter& json, std::string_view key, const std::optional<OpTotal>& total) {
  json.key(key);
  if (!total) {
    json.null();
    return;
  }
  json.begin_object().field("count", total->count).field("time_s", total->seconds).end_object();
}

// The fields that all rows have, inside an object.
void write_row(JsonWriter& json, const DiffRow& row, std::optional<double> ratio) {
  json.field("name", row.name);
  write_total(json, "predicted", row.predicted);
  write_total(json, "measured", row.measured);
  json.field("difference_s", row.difference()).field("ratio", ratio);
}

void write_row(JsonWriter& json, const DiffRow& row) {
  write_row(json, row, row.ratio());
}

void write_side(JsonWriter& json, std::string_view key, const Occupation& side, double kernels) {
  json.key(key).begin_object();
  json.field("iteration_time_s", side.window).field("compute_s", side.compute);
  json.field("exposed_communication_s", side.exposed_communication()).field("idle_s", side.idle);
  json.field("pipeline_or_idle_s", side.pipeline_or_idle()).field("kernels", kernels);
  for (const auto& [name, times] : {std::pair{"exposed_s", &side.exposed}, std::pair{"busy_s", &side.busy}}) {
    json.key(name).begin_object();
    for (std::size_t i = 1; i < kActivityNames.size(); ++i) json.field(kActivityNames[i], (*times)[i]);
    json.end_object();
  }
  json.end_object();
}

void write_families(JsonWriter& json, const TraceDiff& diff) {
  json.key("families").begin_array();
  for (const OtherRow& family : diff.families) {
    json.begin_object();
    write_row(json, family.row);
    json.end_object();
  }
  json.end_array().field("beyond_operators_s", to_seconds(diff.beyond));
}

void write_traffic(JsonWriter& json, const TraceDiff& diff) {
  json.key("communication").begin_array();
  for (const TrafficRow& traffic : diff.traffic) {
    json.begin_object();
    json.field("group", kActivityNames[static_cast<std::size_t>(traffic.key.group)]);
    json.field("collective", traffic.key.kind);
    write_row(json, traffic.row);
    json.end_object();
  }
  json.end_array();
}

void write_products(JsonWriter& json, const TraceDiff& diff) {
  json.key("products").begin_array();
  for (const ProductRow& product : diff.products) {
    json.begin_object().field("m", product.shape.m).field("n", product.shape.n).field("k", product.shape.k);
    json.field("batch", product.shape.batch);
    write_row(json, product.row, product.row.ratio_of_one());
    json.end_object();
  }
  json.end_array().key("products_without_shape").begin_array();
  for (const DiffRow& row : diff.shapeless) {
    json.begin_object();
    write_row(json, row);
    json.end_object();
  }
  json.end_array();
}

void write_operators(JsonWriter& json, const TraceDiff& diff) {
  json.key("operators").begin_array();
  for (const OperatorRow& row : diff.operators) {
    const TiedOperators& of = row.operators;
    json.begin_object().field("family", kWorkKindNames[static_cast<std::size_t>(of.kind)]);
    json.field("pass", of.backward ? "backward" : "forward");
    json.field("tied_by", kTieNames[static_cast<std::size_t>(of.tie)]).key("elements");
    if (of.elements > 0)
      json.value(of.elements);
    else
      json.null();
    json.key("operators").begin_array();
    for (const std::string& name : of.theirs) json.value(name);
    json.end_array();
    write_row(json, row.row);
    json.end_object();
  }
  json.end_array();
}

void write_shares(JsonWriter& json, const TiedShares& shares) {
  json.key("tied").begin_object();
  json.field("compute_s", shares.compute).field("products_s", shares.products);
  json.field("operators_by_shape_s", shares.by_shape).field("operators_by_name_s", shares.by_name);
  json.field("by_family_s", shares.by_family()).end_object();
}

}  // namespace

std::string render_json(const TraceDiff& diff) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.diff/1").field("scenario", diff.scenario);
  json.field("trace", diff.trace).field("rank", diff.rank).field("steps", diff.steps);
  write_side(json, "predicted", diff.predicted, diff.predicted_kernels);
  write_side(json, "measured", diff.measured, diff.measured_kernels);
  write_families(json, diff);
  write_traffic(json, diff);
  write_products(json, diff);
  write_operators(json, diff);
  write_shares(json, tied_shares(diff));
  json.key("others").begin_array();
  for (const OtherRow& other : diff.others) {
    json.begin_object().field("family", kWorkKindNames[static_cast<std::size_t>(other.kind)]);
    write_row(json, other.row);
    json.end_object();
  }
  return json.end_array().end_object().str();
}

}  // namespace stagecraft
