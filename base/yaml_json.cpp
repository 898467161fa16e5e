#include "base/yaml_json.hpp"

#include <string_view>

#include "base/text.hpp"

namespace stagecraft {
namespace {

void write_scalar(JsonWriter& json, const YamlNode& node) {
  if (node.quoted) {
    json.value(node.text);
  } else if (node.text == "true" || node.text == "false") {
    json.value(node.text == "true");
  } else if (const auto integer = parse_integer(node.text)) {
    json.value(*integer);
  } else if (const auto number = parse_number(node.text)) {
    json.value(*number);
  } else {
    json.value(node.text);
  }
}

}  // namespace

void write_json(JsonWriter& json, const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      json.null();
      return;
    case YamlNode::Kind::kSequence:
      json.begin_array();
      for (const YamlNode& item : node.items) write_json(json, item);
      json.end_array();
      return;
    case YamlNode::Kind::kMap:
      json.begin_object();
      for (const YamlEntry& entry : node.entries) write_json(json.key(entry.key), entry.value);
      json.end_object();
      return;
    case YamlNode::Kind::kScalar:
      write_scalar(json, node);
  }
}

void write_json_of_yaml(JsonWriter& json, const std::string& yaml) {
  Diagnostics ignored;
  write_json(json, parse_yaml(yaml, "", ignored).value_or(yaml_scalar(yaml)));
}

}  // namespace stagecraft
