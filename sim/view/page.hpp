// A page that stands alone: one HTML file with its style, its program and its data, which opens from a mail.
//
// The page fetches nothing. The data are one JSON document, in a script element that no text inside can
// close. The page's program uses every text as textContent, where markup has no meaning. Equal data give an
// equal page, byte for byte.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"

namespace stagecraft {

// Text as it stands between tags and in quoted attributes.
[[nodiscard]] std::string html_escaped(std::string_view text);

// A JSON document as it may stand in a script element: '<', '>', '&' and the two line ends of JavaScript that
// JSON does not know are written as \uXXXX, which only ever happens inside its strings.
[[nodiscard]] std::string json_in_script(std::string_view json);

// The object of a writer with one more member, whose value is JSON. requires an object that has members.
[[nodiscard]] std::string with_member(const JsonWriter& object, std::string_view name,
                                      std::string_view value);

// What every page says of itself.
struct PageHead {
  std::string title;             // as text
  std::string command, version;  // to make the answer again
};
// Begins the data of a page: an object with its kind, which the page's program knows, and its head.
void begin_page(JsonWriter& json, std::string_view kind, const PageHead& head);

struct PageContent {
  std::string title;  // as text
  std::string json;   // the data: the object of begin_page()
};
[[nodiscard]] std::string html_page(const PageContent& content);

}  // namespace stagecraft
