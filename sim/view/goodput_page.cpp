#include "sim/view/goodput_page.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/view/page.hpp"

namespace stagecraft {

std::string html_page(const GoodputPage& page) {
  JsonWriter json;
  json.begin_object().field("kind", "goodput").field("title", page.title);
  json.field("command", page.command).field("version", page.version);
  json.field("names", page.names).field("refused", page.refused).key("headlines").begin_array();
  for (const GoodputReport& report : page.reports) json.value(report.headline);
  json.end_array().end_object();
  std::vector<std::string> results;
  for (const GoodputReport& report : page.reports) results.push_back(render_json(report));
  return html_page(
      PageContent{.title = page.title, .json = with_member(json, "results", "[" + join(results, ",") + "]")});
}

}  // namespace stagecraft
