// What a YAML value is in JSON.
#include "base/yaml_json.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

std::string as_json(std::string_view text) {
  Diagnostics diagnostics;
  const std::optional<YamlNode> node = parse_yaml(text, "t.yaml", diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << text;
  JsonWriter json;
  write_json(json, node.value_or(YamlNode{}));
  return json.str();
}

TEST(YamlAsJson, KeepsKindsAndOrder) {
  EXPECT_EQ(as_json("{b: [1, 2.5, true], a: {x: null, y: word}}"),
            R"({"b":[1,2.5,true],"a":{"x":null,"y":"word"}})");
  EXPECT_EQ(as_json("[]"), "[]");
  EXPECT_EQ(as_json("{}"), "{}");
}

TEST(YamlAsJson, QuotesWhatIsText) {
  EXPECT_EQ(as_json(R"(["1", 'true', 10 GiB, yes, "a\"b"])"), R"(["1","true","10 GiB","yes","a\"b"])");
  EXPECT_EQ(as_json("9223372036854775807"), "9223372036854775807");
}

}  // namespace
}  // namespace stagecraft
