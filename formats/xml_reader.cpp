#include "formats/xml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <utility>

#include "base/text.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

class Converter {
 public:
  Converter(const TextPlaces& places, Diagnostics& diagnostics)
      : places_(places), diagnostics_(diagnostics) {}

  std::optional<XmlElement> document(const pugi::xml_document& document) {
    pugi::xml_node root;
    for (const pugi::xml_node node : document.children()) {
      if (node.type() == pugi::node_doctype) {
        refuse(node, "document-type", "a document type declaration is not read",
               "remove it: files of NCCL have none, and no entity is expanded here");
        return std::nullopt;
      }
      if (node.type() != pugi::node_element) continue;
      if (root) {
        refuse(node, "several-roots", fmt::format("{} is a second root element", in_quotes(node.name())),
               "one file, one root");
        return std::nullopt;
      }
      root = node;
    }
    XmlElement element;
    if (!root || !convert(root, 1, element)) return std::nullopt;
    return element;
  }

 private:
  void refuse(const pugi::xml_node& node, std::string code, std::string message, std::string hint) {
    diagnostics_.error({.code = std::move(code),
                        .where = place(node),
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  // The place of the '<': pugixml counts from the name.
  [[nodiscard]] SourceLocation place(const pugi::xml_node& node) const {
    const std::ptrdiff_t offset = node.offset_debug();
    return places_.at(offset > 0 ? static_cast<std::size_t>(offset) - 1 : 0);
  }

  bool convert(const pugi::xml_node& node, int depth, XmlElement& element) {
    if (depth > kMaxXmlDepth) {
      refuse(node, "too-deep", fmt::format("elements nest deeper than {}", kMaxXmlDepth), {});
      return false;
    }
    if (++elements_ > kMaxXmlElements) {
      refuse(node, "too-large", fmt::format("more than {} elements", kMaxXmlElements), {});
      return false;
    }
    element.name = node.name();
    element.where = place(node);
    for (const pugi::xml_attribute attribute : node.attributes()) {
      if (element.attribute(attribute.name()) != nullptr) {
        refuse(node, "duplicate-attribute", fmt::format("{} is given twice", in_quotes(attribute.name())),
               {});
        return false;
      }
      element.attributes.push_back({.name = attribute.name(), .value = attribute.value()});
    }
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (!convert(child, depth + 1, element.children.emplace_back())) return false;
    }
    return true;
  }

  const TextPlaces& places_;
  Diagnostics& diagnostics_;
  std::size_t elements_ = 0;
};

}  // namespace

const std::string* XmlElement::attribute(std::string_view attribute_name) const {
  const auto found = std::ranges::find(attributes, attribute_name, &XmlAttribute::name);
  return found == attributes.end() ? nullptr : &found->value;
}

std::optional<XmlElement> parse_xml(std::string_view text, const std::string& name,
                                    Diagnostics& diagnostics) {
  const TextPlaces places(text, name);
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!result) {
    diagnostics.error(
        {.code = "bad-xml",
         .where = places.at(static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0))),
         .message = fmt::format("is not XML: {}", result.description()),
         .hint = "was the file cut short?"});
    return std::nullopt;
  }
  return Converter(places, diagnostics).document(document);
}

}  // namespace stagecraft
