#include "sim/view/goodput_page.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace stagecraft {

std::string html_page(const GoodputPage& page) {
  JsonWriter json;
  begin_page(json, "goodput", page.head);
  json.field("names", page.names).field("refused", page.refused).key("headlines").begin_array();
  for (const GoodputReport& report : page.reports) json.value(report.headline);
  json.end_array().end_object();
  std::vector<std::string> results;
  for (const GoodputReport& report : page.reports) results.push_back(render_json(report));
  return html_page(PageContent{.title = page.head.title,
                               .json = with_member(json, "results", "[" + join(results, ",") + "]")});
}

}  // namespace stagecraft
