#include "tools/reference/survey.hpp"

#include <algorithm>

#include "base/yaml.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/search_space.hpp"
#include "sim/study/sweep_spec.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> documents_of(DocumentKind kind, const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* folder : {"scenarios", "tools/reference/probes"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      Diagnostics ignored;  // what is no document of this kind is somebody else's
      const auto tree = load_yaml_file(entry.path(), ignored);
      if (!tree || tree->find("stagecraft") == nullptr) continue;
      const bool sweep = tree->find("base") != nullptr || tree->find("vary") != nullptr;
      if (sweep == (kind == DocumentKind::kSweep)) files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// "cluster.nodes[].node" -> "cluster.nodes.node"; the paths that a sweep varies are one key.
std::string one_path(std::string path) {
  for (std::size_t at = path.find("[]"); at != std::string::npos; at = path.find("[]")) path.erase(at, 2);
  if (path.starts_with("vary.")) return "vary.*." + path.substr(path.rfind('.') + 1);
  const std::size_t key = path.rfind('.');
  return key == std::string::npos ? path : home_of(path.substr(0, key)) + path.substr(key);
}

// Every item of a table of numbers is one key.
class Merge {
 public:
  void add(const KeySurvey& survey) {
    for (const KeySurvey::Entry& entry : survey.entries()) add(entry);
  }
  Reference take();

 private:
  void add(const KeySurvey::Entry& entry) {
    const std::string path = one_path(entry.path);
    if (path == "model.stagecraft") return;  // how a scenario is told from the model that it lends
    const auto [at, is_new] = index_.emplace(path, entries_.size());
    if (is_new) entries_.push_back({.path = path});
    for (const auto& [choice, known] : entry.by_choice) {
      SurveyedKey& all = entries_[at->second].by_choice[choice];
      for (const KeyForm& form : known.forms)
        if (std::ranges::find(all.forms, form) == all.forms.end()) all.forms.push_back(form);
      all.fallbacks.insert(known.fallbacks.begin(), known.fallbacks.end());
      all.asked_without_fallback |= known.asked_without_fallback;
      all.seen_absent |= known.seen_absent;
    }
  }

  std::vector<KeySurvey::Entry> entries_;
  std::map<std::string, std::size_t> index_;
};

// Keeps forms that differ by their limits alone as one form without them: they follow from other values.
void put(std::vector<KeyForm>& forms, const KeyForm& form) {
  for (KeyForm& known : forms) {
    if (known.kind != form.kind || known.list != form.list) continue;
    if (known.min != form.min) known.min.reset();
    if (known.max != form.max) known.max.reset();
    for (const std::string& word : form.words)
      if (std::ranges::find(known.words, word) == known.words.end()) known.words.push_back(word);
    return;
  }
  forms.push_back(form);
}

ReferenceKey one_key(const KeySurvey::Entry& entry) {
  ReferenceKey key{.path = entry.path};
  bool ever_absent = false, all_required = true;
  for (const auto& [choice, known] : entry.by_choice) {
    key.asked.insert(choice);
    ever_absent = ever_absent || known.seen_absent;
    if (known.forms.empty()) continue;
    key.counts.insert(choice);
    for (const KeyForm& form : known.forms) put(key.forms, form);
    if (!known.fallbacks.empty()) key.fallbacks[choice] = known.fallbacks;
    const bool constant =
        std::ranges::any_of(known.fallbacks, [](const auto& text) { return !text.empty(); });
    all_required = all_required && known.asked_without_fallback && !constant;
  }
  key.required = all_required && !ever_absent && !key.path.ends_with("<n>");
  return key;
}

bool is_mapping(const ReferenceKey& key) {
  return std::ranges::any_of(key.forms, [](const KeyForm& form) { return form.kind == KeyForm::Kind::kMap; });
}

Reference Merge::take() {
  Reference reference;
  for (const KeySurvey::Entry& entry : entries_) {
    const ReferenceKey& key = reference.keys.emplace_back(one_key(entry));
    for (const auto& [choice, known] : entry.by_choice) {
      const std::size_t colon = choice.find(": ");
      if (colon != std::string::npos)
        reference.choices[key.mapping()][choice.substr(0, colon)].insert(choice.substr(colon + 2));
    }
  }
  // A mapping with a required key is required, where it never was absent.
  for (ReferenceKey& key : reference.keys) {
    if (!is_mapping(key)) continue;
    const bool absent = std::ranges::any_of(entries_, [&](const auto& entry) {
      return entry.path == key.path &&
             std::ranges::any_of(entry.by_choice, [](const auto& known) { return known.second.seen_absent; });
    });
    const bool holds_required = std::ranges::any_of(reference.keys, [&](const ReferenceKey& inner) {
      return inner.required && inner.mapping() == key.path;
    });
    key.required = !absent && holds_required;
  }
  return reference;
}

void survey_scenario(const fs::path& file, Library& library, Merge& merge) {
  KeySurvey scenario_keys(file.string()), search_keys(file.string());
  Diagnostics diagnostics;
  diagnostics.survey_keys(&scenario_keys);
  const auto tree = load_tree(file, library, diagnostics);
  diagnostics.throw_if_errors();
  (void)read_scenario(*tree, library, diagnostics);
  diagnostics.throw_if_errors();
  merge.add(scenario_keys);
  const YamlNode* section = tree->root.find("search");
  if (section == nullptr) return;
  search_keys.ask("", "search");
  diagnostics.survey_keys(&search_keys);
  (void)load_search_space(library.data().root / "scenarios/search/space.yaml", section, {}, diagnostics);
  diagnostics.throw_if_errors();
  merge.add(search_keys);
}

void survey_sweep(const fs::path& file, Library& library, Merge& merge) {
  KeySurvey keys(file.string());
  Diagnostics diagnostics;
  diagnostics.survey_keys(&keys);
  (void)load_sweep(file, {}, library, diagnostics);
  diagnostics.throw_if_errors();
  merge.add(keys);
}

}  // namespace

std::string home_of(const std::string& path) {
  if (path == "cluster.nodes.node") return "cluster.node";
  if (path.starts_with("failures.") && path.ends_with(".repair")) return "failures.repair";
  return path;
}

std::string ReferenceKey::mapping() const {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string ReferenceKey::name() const {
  return path.substr(path.rfind('.') + 1);
}

const ReferenceKey* Reference::find(std::string_view path) const {
  const auto found = std::ranges::find(keys, path, &ReferenceKey::path);
  return found == keys.end() ? nullptr : &*found;
}

Reference survey(DocumentKind kind, const fs::path& root) {
  Library library(DataDirectory{.root = root});
  Merge merge;
  for (const fs::path& file : documents_of(kind, root)) {
    if (kind == DocumentKind::kScenario)
      survey_scenario(file, library, merge);
    else
      survey_sweep(file, library, merge);
  }
  return merge.take();
}

std::vector<std::string> problems_of(const Reference& reference) {
  std::vector<std::string> problems;
  for (const ReferenceKey& key : reference.keys)
    if (key.forms.empty()) problems.push_back(key.path + ": no document makes its reader say what it holds");
  return problems;
}

}  // namespace stagecraft
