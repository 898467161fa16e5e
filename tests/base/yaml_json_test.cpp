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

TEST(YamlAsJson, TakesTextThatIsNoYamlAsItIs) {
  const auto written = [](const std::string& yaml) {
    JsonWriter json;
    write_json_of_yaml(json, yaml);
    return json.str();
  };
  EXPECT_EQ(written("[1, true, 2 GiB]"), R"([1,true,"2 GiB"])");
  EXPECT_EQ(written(">= 0.4"), R"(">= 0.4")");
  EXPECT_EQ(written("[1, 2"), R"("[1, 2")");
}

}  // namespace
}  // namespace stagecraft
