#include "sim/view/page.hpp"

#include "sim/view/page_files.hpp"

namespace stagecraft {

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string json_in_script(std::string_view json) {
  constexpr std::string_view kLineSeparators = "\xe2\x80\xa8\xe2\x80\xa9";  // U+2028, U+2029
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view three = json.substr(i, 3);
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '>') {
      out += "\\u003e";
    } else if (json[i] == '&') {
      out += "\\u0026";
    } else if (three == kLineSeparators.substr(0, 3) || three == kLineSeparators.substr(3)) {
      out += three == kLineSeparators.substr(3) ? "\\u2029" : "\\u2028";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string with_member(const JsonWriter& object, std::string_view name, std::string_view value) {
  std::string text = object.str();
  text.back() = ',';
  text += '"' + std::string(name) + "\":";
  text += value;
  return text + '}';
}

void begin_page(JsonWriter& json, std::string_view kind, const PageHead& head) {
  json.begin_object().field("kind", kind).field("title", head.title);
  json.field("command", head.command).field("version", head.version);
}

std::string html_page(const PageContent& content) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n<title>";
  page += html_escaped(content.title);
  page += " · Stagecraft</title>\n<style>\n";
  page += page_style();
  page +=
      "</style>\n</head>\n<body>\n<main id=\"page\"></main>\n"
      "<noscript>This page draws itself: it needs JavaScript, and nothing from any network.</noscript>\n"
      "<script type=\"application/json\" id=\"data\">";
  page += json_in_script(content.json);
  page += "</script>\n<script>\n'use strict';\n";
  for (const std::string_view part : page_scripts()) page += part;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace stagecraft
