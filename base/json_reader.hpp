// JSON in, with places: the same tree as YAML gives, so that one set of getters (YamlMap) reads both.
//
// YAML 1.2 contains JSON, but its readers do not: surrogate pairs, for which parse_yaml comes here, tabs before
// keys and what JSON forbids (comments, bare words, anchors) differ. Read here: RFC 8259, a byte-order mark,
// any line ends, and NaN, Infinity and -Infinity, which Python writes. A number keeps the digits it was
// written with. Duplicate keys are mistakes. The limits are those of YAML: kMaxYamlFileBytes, kMaxYamlNodes,
// kMaxYamlDepth.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// One document. On any mistake: reports to `diagnostics` and returns nullopt. `name` is used in places only;
// columns count bytes, as those of YAML do.
[[nodiscard]] std::optional<YamlNode> parse_json(std::string_view text, const std::string& name,
                                                 Diagnostics& diagnostics);

}  // namespace stagecraft
