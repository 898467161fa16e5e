// What a test asks an imported fragment.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "base/yaml.hpp"
#include "formats/fragment.hpp"
#include "models/load_model.hpp"
#include "models/model_spec.hpp"

namespace stagecraft {

struct Import {
  std::optional<Fragment> fragment;
  std::vector<std::string> messages;

  // "parallelism.tensor": the value as it is written; "absent"; "refused".
  [[nodiscard]] std::string at(const std::string& path) const {
    if (!fragment) return "refused";
    const std::vector<FragmentEntry>* entries = &fragment->entries;
    std::istringstream parts(path);
    const FragmentEntry* found = nullptr;
    for (std::string part; std::getline(parts, part, '.');) {
      found = nullptr;
      for (const FragmentEntry& entry : *entries)
        if (entry.key == part) found = &entry;
      if (found == nullptr) return "absent";
      entries = &found->entries;
    }
    if (found->value.kind != YamlNode::Kind::kSequence) return found->value.text;
    std::string list;
    for (const YamlNode& item : found->value.items) list += (list.empty() ? "" : " ") + item.text;
    return list;
  }
};

// The parameters of the model section; 0 without one.
inline std::int64_t parameters(const Import& import) {
  if (!import.fragment) return 0;
  for (const FragmentEntry& entry : import.fragment->entries) {
    if (entry.key != "model") continue;
    Diagnostics diagnostics;
    const YamlNode tree = to_tree(entry.entries, {});
    YamlMap map(&tree, "model", {}, diagnostics);
    return parameter_count(std::get<TransformerSpec>(load_model(map)));
  }
  return 0;
}

}  // namespace stagecraft
