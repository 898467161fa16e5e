#include <cmath>
#include <string>

#include "base/json.hpp"
#include "tools/validation/render.hpp"
#include "tools/validation/render_parts.hpp"

namespace stagecraft {
namespace {

void write_rows(const SetScore& score, JsonWriter& json) {
  json.key("rows").begin_array();
  for (const ScoredRow& row : score.rows) {
    json.begin_object().field("id", row.id).field("predicted_s", row.predicted);
    json.field("measured_s", row.measured).field("error", row.error());
    json.key("interval_90_s").begin_array().value(row.interval[0]).value(row.interval[1]).end_array();
    json.field("covered", row.covered()).key("shares").begin_object();
    for (std::size_t i = 0; i < kOpFamilyCount; ++i) json.field(kOpFamilyNames[i], row.shares[i]);
    json.end_object().end_object();
  }
  json.end_array();
  write_skipped(score.skipped, json);
}

void write_comparison(const SetScore& score, const ScoreData& data, JsonWriter& json) {
  const NullModel null = score.null_model(false), bubble = score.null_model(true);
  json.key("null_model").begin_object().field("rate_flop_s", null.rate);
  json.field("mape", summarise(null.errors).mean_absolute);
  json.field("mape_with_bubble", summarise(bubble.errors).mean_absolute).end_object();
  json.key("peers").begin_array();
  for (const PeerScore& peer : peers_of(score, data)) {
    json.begin_object().field("tool", peer.tool).field("mape", peer.mean_absolute);
    if (peer.rows > 0) json.field("rows", peer.rows);
    json.field("remark", peer.remark).end_object();
  }
  json.end_array().key("ranks").begin_array();
  for (const bool by_gpus : {false, true}) {
    for (const RankCorrelation& group : score.ranks(by_gpus)) {
      json.begin_object().field("model", group.model);
      if (by_gpus) json.field("gpus", group.gpus);
      json.field("rows", group.rows).field("correlation", group.correlation).end_object();
    }
  }
  json.end_array().key("ratios").begin_array();
  for (const RatioScore& ratio : score.ratios()) {
    json.begin_object().field("by", ratio.kind).field("first", ratio.first);
    json.field("second", ratio.second).field("predicted", ratio.predicted);
    json.field("measured", ratio.measured).field("error", ratio.error()).end_object();
  }
  json.end_array();
}

void write_attribution(const SetScore& score, JsonWriter& json) {
  const Attribution attribution = attribute_errors(score);
  const std::vector<std::string_view> names = cause_names();
  json.key("attribution").begin_object().field("explained", attribution.explained);
  json.field("left", attribution.left).key("families").begin_array();
  for (std::size_t i = 0; i < attribution.families.size(); ++i) {
    const FamilyBlame& family = attribution.families[i];
    json.begin_object().field("family", names[i]).field("share", family.mean_share);
    json.field("delta", family.delta).field("standard_error", family.standard_error);
    json.field("contribution", family.contribution).end_object();
  }
  json.end_array().end_object();
}

// Null where there are none.
void write_errors(const char* key, const PooledErrors& errors, JsonWriter& json) {
  json.key(key);
  if (errors.rows.empty()) {
    json.null();
    return;
  }
  const ErrorSummary summary = summarise(errors.rows);
  json.begin_object().field("sets", errors.sets).field("rows", errors.rows.size());
  json.field("mape", summary.mean_absolute).field("bias", summary.bias);
  json.field("median", summary.median_absolute).field("coverage_90", errors.coverage()).end_object();
}

void write_kinds(const std::vector<KindScore>& kinds, JsonWriter& json) {
  json.key("kinds").begin_array();
  for (const KindScore& kind : kinds) {
    json.begin_object().field("title", kind.title).field("sets", kind.sets()).field("rows", kind.rows());
    write_errors("held_out", kind.errors.held_out, json);
    write_errors("fitted", kind.errors.fitted, json);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string set_json(const SetScore& score, const ScoreData& data, RenderOptions options) {
  const ErrorSummary summary = score.summary();
  const FittedCount fitted = fitted_constants_of(score, data);
  JsonWriter json;
  json.begin_object()
      .field("schema", "stagecraft.validation/1")
      .field("set", score.name)
      .field("title", score.title);
  json.field("source", score.origin).field("licence", score.licence);
  json.field("profile", score.profile).key("fitted_constants").begin_object();
  json.field("profile", fitted.profile).field("site", fitted.site).end_object();
  json.field("held_out", !fitted.on_this_set);
  json.field("rows_scored", score.rows.size())
      .field("mape", summary.mean_absolute)
      .field("bias", summary.bias);
  json.field("median", summary.median_absolute);
  json.field("worst", score.rows.empty() ? 0.0 : std::abs(score.rows[summary.worst].error()));
  json.field("coverage_90", score.coverage()).field("median_width", score.median_width());
  if (!score.rows.empty()) write_comparison(score, data, json);
  if (options.attribute) write_attribution(score, json);
  write_rows(score, json);
  json.field("assumed", score.assumed).field("known", score.known).end_object();
  return json.str();
}

std::string pooled_json(const PooledIntervals& pooled, const ErrorsByFit& errors,
                        const std::vector<KindScore>& kinds) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.validation-intervals/1");
  json.field("coverage_90", pooled.now.share).field("median_width", pooled.now.median_width);
  json.field("coverage_90_left_out", pooled.left_out.share);
  json.field("median_width_left_out", pooled.left_out.median_width);
  write_errors("fitted", errors.fitted, json);
  write_errors("held_out", errors.held_out, json);
  write_kinds(kinds, json);
  json.end_object();
  return json.str();
}

}  // namespace stagecraft
