// Reads XML as a tree of elements with places, for importers.
//
// Elements and attributes only; text between elements, comments and processing instructions are passed over.
// Refused where they stand: a document type declaration (nothing here expands entities, so there is no bomb
// to build), an attribute given twice, several roots, nesting beyond kMaxXmlDepth, more than kMaxXmlElements.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace stagecraft {

inline constexpr int kMaxXmlDepth = 32;
inline constexpr std::size_t kMaxXmlElements = 100'000;

struct XmlAttribute {
  std::string name = {};
  std::string value = {};
};

struct XmlElement {
  std::string name = {};
  SourceLocation where = {};
  std::vector<XmlAttribute> attributes = {};
  std::vector<XmlElement> children = {};

  // nullptr when there is no such attribute.
  [[nodiscard]] const std::string* attribute(std::string_view attribute_name) const;
};

// The root element. `text` is UTF-8 (formats/input_text.hpp). On any mistake: reports, nullopt.
[[nodiscard]] std::optional<XmlElement> parse_xml(std::string_view text, const std::string& name,
                                                  Diagnostics& diagnostics);

}  // namespace stagecraft
