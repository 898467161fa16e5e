#include "sim/view/validation_page.hpp"

#include "base/json.hpp"

namespace stagecraft {
namespace {

void write_point(JsonWriter& json, const ValidationPoint& point) {
  json.begin_object().field("name", point.name);
  json.field("predicted_s", point.predicted).field("measured_s", point.measured);
  json.field("error", point.predicted / point.measured - 1).key("interval_90_s").begin_array();
  json.value(point.interval[0]).value(point.interval[1]).end_array();
  json.field("covered", point.interval[0] <= point.measured && point.measured <= point.interval[1]);
  json.end_object();
}

}  // namespace

std::string html_page(const ValidationPage& page) {
  JsonWriter json;
  begin_page(json, "validate", page.head);
  json.field("skipped", page.skipped).key("sets").begin_array();
  for (const ValidationSeries& set : page.sets) {
    json.begin_object().field("name", set.name).field("title", set.title);
    json.field("profile", set.profile).field("mape", set.mean_absolute);
    json.field("bias", set.bias).field("median", set.median).key("rows").begin_array();
    for (const ValidationPoint& point : set.points) write_point(json, point);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return html_page(PageContent{.title = page.head.title, .json = json.str()});
}

}  // namespace stagecraft
