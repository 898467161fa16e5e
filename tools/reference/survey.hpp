// The keys of scenarios and sweeps, as requested by their readers.
//
// The loaders read every document of the surveyed folders while a KeySurvey records the requested keys; the
// union is one table. The shipped documents visit most branches, tools/reference/probes the rest. A key that
// no document requests is a problem that tests show (see problems_of()).
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_survey.hpp"

namespace stagecraft {

// Properties of one key. Lists of mappings and single ones share a path: "failures.process.kind".
struct ReferenceKey {
  std::string path = {};
  std::vector<KeyForm> forms = {};
  bool required = false;              // in every mapping where it counts
  std::set<std::string> asked = {};   // under which words of the deciding key readers know it; "" is always
  std::set<std::string> counts = {};  // under which they read it
  std::map<std::string, std::set<std::string>> fallbacks = {};  // by that word

  [[nodiscard]] std::string mapping() const;  // "cluster.node" of "cluster.node.gpus"; "" is the document
  [[nodiscard]] std::string name() const;     // "gpus"
};

struct Reference {
  std::vector<ReferenceKey> keys;  // in the order of the readers, a mapping before its keys
  // By mapping: "kind" -> the words that were met.
  std::map<std::string, std::map<std::string, std::set<std::string>>> choices;

  [[nodiscard]] const ReferenceKey* find(std::string_view path) const;
};

// Where the keys of the mapping at `path` are told, where several mappings are of one kind: those of a
// group's node are "cluster.node"'s.
[[nodiscard]] std::string home_of(const std::string& path);

enum class DocumentKind { kScenario, kSweep };

// Reads all documents of `kind` below `root`/scenarios and `root`/tools/reference/probes.
//   throws ScenarioError when one of them has a mistake.
[[nodiscard]] Reference survey(DocumentKind kind, const std::filesystem::path& root);

// Keys whose kind no reader requested: they need a probe.
[[nodiscard]] std::vector<std::string> problems_of(const Reference& reference);

}  // namespace stagecraft
