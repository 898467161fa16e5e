#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/reference/key_help.hpp"
#include "tools/reference/render.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

// Numbers and units as the parsers of base/yaml_units.cpp have them.
constexpr const char* kNumber = R"([+]?([0-9][0-9_]*)?(\.[0-9_]*)?([eE][+-]?[0-9]+)?)";
constexpr const char* kTimes = "(ns|us|\u00b5s|\u03bcs|ms|s|min|h|days?)";
constexpr const char* kBytes = "([kKMGT]?B|[KMGT]iB)";
constexpr const char* kRates = "([kKMGT]?B|[KMGT]iB|[MGT]b) *";
constexpr const char* kFlops = "[GTP]FLOP";

// A quantity, or 0, which needs no unit.
Json quantity(const char* units, const char* per = "") {
  return {{"type", {"string", "number"}},
          {"pattern", fmt::format("^ *({} *{}{}|0) *$", kNumber, units, per)},
          {"minimum", 0},
          {"maximum", 0}};
}

// Readers of YAML 1.1 take 1e3 and 12_000 for text.
Json number(const KeyForm& form, const char* type, const char* as_text) {
  Json schema = {{"type", {type, "string"}}, {"pattern", as_text}};
  const auto put = [&](const char* name, double limit) {
    if (limit == static_cast<double>(static_cast<std::int64_t>(limit)))
      schema[name] = static_cast<std::int64_t>(limit);
    else
      schema[name] = limit;
  };
  if (form.min) put("minimum", *form.min);
  if (form.max) put("maximum", *form.max);
  return schema;
}

Json scalar(const KeyForm& form) {
  switch (form.kind) {
    case KeyForm::Kind::kInteger:
      return number(form, "integer", "^[+-]?[0-9]+((_[0-9]+)+|[eE][+]?[0-9]+)$");
    case KeyForm::Kind::kNumber:
      return number(form, "number", R"(^[+-]?[0-9]*((_[0-9]+)+(\.[0-9]+)?|(\.[0-9]*)?[eE][+-]?[0-9]+)$)");
    case KeyForm::Kind::kBoolean:
      return {{"type", "boolean"}};
    case KeyForm::Kind::kChoice:
      return {{"enum", form.words}};
    case KeyForm::Kind::kText:
      return {{"type", {"string", "number", "boolean"}}};
    case KeyForm::Kind::kDuration:
      return quantity(kTimes);
    case KeyForm::Kind::kBytes:
      return quantity(kBytes);
    case KeyForm::Kind::kBandwidth:
      return quantity(kRates, "/s");
    case KeyForm::Kind::kFlopRate:
      return quantity(kFlops, "/s");
    default:
      return Json::object();
  }
}

class Schemas {
 public:
  Schemas(DocumentKind kind, const Reference& reference) : kind_(kind), reference_(reference) {}

  // The schema of the mapping at `path`; "" is the document.
  [[nodiscard]] Json mapping(const std::string& path) const;

 private:
  [[nodiscard]] std::vector<const ReferenceKey*> keys_of(const std::string& path) const;
  [[nodiscard]] Json value(const ReferenceKey& key) const;
  [[nodiscard]] Json forms(const ReferenceKey& key) const;
  [[nodiscard]] std::string description(const ReferenceKey& key) const;
  void add_conditions(const std::string& path, Json& schema) const;

  DocumentKind kind_;
  const Reference& reference_;
};

std::vector<const ReferenceKey*> Schemas::keys_of(const std::string& path) const {
  std::vector<const ReferenceKey*> keys;
  for (const ReferenceKey& key : reference_.keys)
    if (key.mapping() == path) keys.push_back(&key);
  return keys;
}

Json Schemas::mapping(const std::string& path) const {
  Json schema = {{"type", "object"}, {"additionalProperties", false}};
  std::vector<std::string> required;
  for (const ReferenceKey* key : keys_of(path)) {
    const std::string name = key->name();
    if (name == "<n>") {
      schema["patternProperties"] = {{"^[0-9_]+$", value(*key)}};
      continue;
    }
    schema["properties"][name] = value(*key);
    if (is_required(kind_, *key) && key->counts.contains("")) required.push_back(name);
  }
  if (!required.empty()) schema["required"] = required;
  add_conditions(path, schema);
  return schema;
}

// Under a word of the deciding key: keys that no reader asks for are refused, some are required.
void Schemas::add_conditions(const std::string& path, Json& schema) const {
  const auto choices = reference_.choices.find(path);
  if (choices == reference_.choices.end()) return;
  for (const auto& [deciding, words] : choices->second) {
    for (const std::string& word : words) {
      const std::string choice = deciding + ": " + word;
      Json then = Json::object();
      for (const ReferenceKey* key : keys_of(path)) {
        const std::string name = key->name();
        if (!key->asked.contains("") && !key->asked.contains(choice)) then["properties"][name] = false;
        if (is_required(kind_, *key) && !key->counts.contains("") && key->counts.contains(choice))
          then["required"].push_back(name);
      }
      if (then.empty()) continue;
      schema["allOf"].push_back(
          {{"if", {{"properties", {{deciding, {{"const", word}}}}}, {"required", Json::array({deciding})}}},
           {"then", then}});
    }
  }
}

Json Schemas::forms(const ReferenceKey& key) const {
  const KeyHelp* help = find_help(kind_, key.path);
  if (help != nullptr && !help->schema.empty()) return Json::parse(help->schema);
  const auto has = [&](KeyForm::Kind kind) {
    return std::ranges::any_of(key.forms, [&](const KeyForm& form) { return form.kind == kind; });
  };
  std::vector<Json> all;
  for (const KeyForm& form : key.forms) {
    if (form.kind == KeyForm::Kind::kText && has(KeyForm::Kind::kChoice)) continue;  // it says which texts
    if (form.kind == KeyForm::Kind::kMap)
      all.push_back(mapping(home_of(key.path)));
    else if (form.kind == KeyForm::Kind::kMaps)
      all.push_back({{"type", "array"}, {"items", mapping(home_of(key.path))}});
    else
      all.push_back(scalar(form));
    if (form.list) all.push_back({{"type", "array"}, {"items", all.back()}});
  }
  if (all.size() == 1) return all.front();
  return {{"anyOf", all}};
}

std::string Schemas::description(const ReferenceKey& key) const {
  const KeyHelp* help = find_help(kind_, key.path);
  std::string text = help == nullptr ? "" : std::string(help->help);
  const std::string fallback = fallback_of(kind_, key);
  if (!fallback.empty()) text += fmt::format("{}default: {}", text.empty() ? "" : "; ", fallback);
  return text;
}

Json Schemas::value(const ReferenceKey& key) const {
  Json schema;
  if (const std::string text = description(key); !text.empty()) schema["description"] = text;
  const std::string each = key.path + ".*";
  const bool ranges = std::ranges::any_of(
      reference_.keys, [&](const ReferenceKey& other) { return other.path.starts_with(each + "."); });
  if (ranges)
    schema.update(
        {{"type", "object"},
         {"minProperties", 1},
         {"additionalProperties", {{"anyOf", {Json{{"type", "array"}, {"minItems", 1}}, mapping(each)}}}}});
  else
    schema.update(forms(key));
  return schema;
}

}  // namespace

std::string render_schema(const References& references, std::string_view name) {
  struct Kind {
    std::string_view name;
    const char* title;
    const char* path;
  };
  constexpr Kind kKinds[] = {
      {"scenario", "A scenario of Stagecraft: one training job on one cluster", ""},
      {"sweep", "A sweep of Stagecraft: a scenario and what varies", ""},
      {"model", "A model of Stagecraft, as in scenarios/models/", "model"},
      {"node", "A node of Stagecraft, as in scenarios/nodes/", "cluster.node"},
      {"fabric", "A fabric of Stagecraft, as in scenarios/fabrics/", "cluster.fabric"}};
  for (const Kind& kind : kKinds) {
    if (kind.name != name) continue;
    const bool sweep = name == "sweep";
    const Schemas schemas(sweep ? DocumentKind::kSweep : DocumentKind::kScenario,
                          sweep ? references.sweep : references.scenario);
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", kind.title}};
    schema.update(schemas.mapping(kind.path));
    return schema.dump(1) + "\n";
  }
  throw std::invalid_argument(fmt::format("there is no schema '{}'", name));
}

}  // namespace stagecraft
