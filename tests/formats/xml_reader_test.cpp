#include "formats/xml_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/topology_file.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> mistakes_of(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_xml(text, "f.xml", diagnostics));
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : diagnostics.items()) messages.push_back(render(diagnostic));
  return messages;
}

std::string nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "<a>";
  for (int i = 0; i < depth; ++i) text += "</a>";
  return text;
}

TEST(XmlReader, ElementsKnowTheirPlacesAndAttributes) {
  Diagnostics diagnostics;
  const auto root =
      parse_xml("<?xml version=\"1.0\"?>\n<!-- c -->\n<a x=\"1\">\n  <b y=\"&lt;2&gt;\"/>text<b/>\n</a>",
                "f.xml", diagnostics);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->name, "a");
  EXPECT_EQ(root->where, (SourceLocation{"f.xml", 3, 1}));
  ASSERT_EQ(root->children.size(), 2u);
  EXPECT_EQ(root->children[0].where, (SourceLocation{"f.xml", 4, 3}));
  EXPECT_EQ(*root->children[0].attribute("y"), "<2>");
  EXPECT_EQ(root->children[1].attribute("y"), nullptr);
}

TEST(XmlReader, DocumentTypesAreRefusedBeforeAnyEntityIsExpanded) {
  EXPECT_THAT(mistakes_of("<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]>\n<a>&c;</a>"),
              ElementsAre(HasSubstr("document type declaration")));
}

TEST(XmlReader, NestingIsBounded) {
  Diagnostics diagnostics;
  EXPECT_TRUE(parse_xml(nested(kMaxXmlDepth), "f.xml", diagnostics));
  EXPECT_THAT(mistakes_of(nested(kMaxXmlDepth + 1)),
              ElementsAre("f.xml:1:97: error: elements nest deeper than 32"));
  EXPECT_THAT(mistakes_of(nested(1'000'000)), ElementsAre(HasSubstr("deeper than 32")));
}

TEST(XmlReader, ElementsAreBounded) {
  std::string text = "<a>";
  for (std::size_t i = 0; i < kMaxXmlElements; ++i) text += "<b/>";
  EXPECT_THAT(mistakes_of(text + "</a>"), ElementsAre(HasSubstr("more than 100000 elements")));
}

TEST(XmlReader, WhatIsNoXmlIsRefusedWhereItBreaks) {
  EXPECT_THAT(mistakes_of("<a>\n <b>\n</a>"), ElementsAre(HasSubstr("f.xml:3:")));
  EXPECT_THAT(mistakes_of("<a x=\"1\" x=\"2\"/>"), ElementsAre("f.xml:1:1: error: 'x' is given twice"));
  EXPECT_THAT(mistakes_of("<a/>\n<b/>"), ElementsAre(HasSubstr("f.xml:2:1: error: 'b' is a second root")));
  EXPECT_THAT(mistakes_of("<!-- nothing -->"), ElementsAre(HasSubstr("is not XML")));
}

std::string refusal_of(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(import_topology(text, "f", {}, diagnostics));
  return diagnostics.items().empty() ? "" : render(diagnostics.items().front());
}

TEST(TopologyFile, WhatIsNoTextIsRefusedWhereItStands) {
  EXPECT_THAT(refusal_of("\xff\xfe<\0s\0"), HasSubstr("is UTF-16"));
  EXPECT_THAT(refusal_of("<system>\n <cpu a=\"\xe9\"/></system>"),
              HasSubstr("f:2:10: error: byte 0xe9 is not UTF-8"));
  EXPECT_THAT(refusal_of(std::string("<a>\0</a>", 8)),
              HasSubstr("f:1:4: error: byte 0x00 is a control character"));
  EXPECT_THAT(refusal_of("hello"), HasSubstr("is no topology that is read here"));
  EXPECT_THAT(refusal_of(""), HasSubstr("f: error: the file is empty"));
  EXPECT_THAT(refusal_of("\r\n"), HasSubstr("f: error: the file is empty"));
}

TEST(TopologyFile, ByteOrderMarkAndWindowsLineEndsAreRead) {
  Diagnostics diagnostics;
  EXPECT_TRUE(import_topology("\xef\xbb\xbfSwitchName=s1 Nodes=a,b\r\n", "f", {}, diagnostics));
  EXPECT_FALSE(diagnostics.has_errors());
}

}  // namespace
}  // namespace stagecraft
