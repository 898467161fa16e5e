// A page that stands alone: one HTML file with its style, its program and its data, which opens from a mail.
//
// Nothing is fetched. The data are one JSON document, in a script element that no text inside it can end; the
// page's program puts every text of it where markup means nothing (textContent). The page is the same bytes
// for the same data.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

// Text as it stands between tags and in quoted attributes.
[[nodiscard]] std::string html_escaped(std::string_view text);

// A JSON document as it may stand in a script element: '<', '>', '&' and the two line ends of JavaScript that
// JSON does not know are written as \uXXXX, which only ever happens inside its strings.
[[nodiscard]] std::string json_in_script(std::string_view json);

struct PageContent {
  std::string title;  // as text
  std::string json;   // the data: an object with a `kind` that the page's program knows
};
[[nodiscard]] std::string html_page(const PageContent& content);

}  // namespace stagecraft
